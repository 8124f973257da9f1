// Sums that have one order: who adds waits for a turn, and passes it on when all of it has been
// added.
//
//   thread 3:                                      thread 1:
//       for t, x in range_down_rolled(...):            for t, x in range_down_rolled(...):
//           let m = ...                                    let m = ...
//           wait_free turn_free[t]                         wait turn_full[t]
//           wait_turn turns[b, h, m] == n                  arrive turn_free[t]
//           arrive turn_full[t]                            wait dq_full[t]
//                                                          tma_add dq_s[t] -> sum_dq[b, h, m, 0]
//                                                          tma_store_wait
//                                                          pass_turn turns[b, h, m] = n + 1
//
// A CTA with number n adds to a block of rows when its value is n, and makes it n + 1 behind that:
// so additions to an element come in the order of the numbers, whatever CTAs run when. Where the
// first to add is not number 0 it waits for 0, which a pre-pass has left: `where(..., n, 0)`. That
// needs no more than what stands in the text: both threads run the same loop over the same names,
// the one that adds begins a round behind the other's arrival in it, and between pass_turn and the
// next round's wait nothing is added. The asking thread is one of its own: a round of asking,
// adding and passing on takes a thread longer than a block of queries takes the warpgroups.
//
// Where a warpgroup adds from its registers, its loop is that loop too, and a thread passes on what
// it has heard of:
//
//   if me > 0:                                     thread 3:
//       for t, x in range_down_rolled(...):            for t, x in range_down_rolled(...):
//           wait turn_full[t]                              let m = ...
//           add_tile dq_r -> sum_dq[b, h, m * BM, 0]       wait added[t]
//           arrive added[t]                                pass_turn turns[b, h, m] = n + 1
#include <algorithm>

#include "tl/laws/laws_check.h"
#include "tl/syntax/expr.h"

namespace kw::tl {

namespace {
void has_turns(Check& c) {
  c.facts.has_turns = true;
  const Symbol* t = c.find(c.stmt.tensor());
  if (t && !(t->scratch && t->element == "f32" && t->dims.size() == 3))
    another_tensor_is_due(c, "C1", c.stmt.tensor(), *t);
}
}  // namespace
void law_wait_turn(Check& c) { has_turns(c); }
void law_pass_turn(Check& c) { has_turns(c); }

namespace {

bool same(const ExprPtr& a, const ExprPtr& b) { return print(a) == print(b); }
bool same_place(const Stmt& a, const Stmt& b) {
  return same(a.batch(), b.batch()) && same(a.head(), b.head()) && same(a.row(), b.row());
}

// A loop of one of the producer's threads, or of warpgroups.
struct Round {
  const Stmt *thread, *loop;  // thread: the block where it stands
  // What gives its names their values: what stands before it and gives or counts some, the loop and
  // its lets.
  std::string names() const {
    std::string out;
    const std::string counter = loop->has(Hole::counter) ? loop->counter() : "";
    const auto counts = [&](const Stmt& s) {
      return s.has(Hole::counter) && s.counter() == counter;
    };
    for (const Stmt& s : thread->body) {
      if (&s == loop) break;
      bool counted = counts(s);
      walk(s.body, [&](const Stmt& inner) { counted |= counts(inner); });
      if (s.op == Op::let || counted) out += print(s);
      if (s.op != Op::var) continue;
      for (const Item& item : s.names())
        if (item.name == counter) out += fmt::format("{} = {}\n", counter, print(item.expr));
    }
    Stmt head = *loop;
    std::erase_if(head.body, [](const Stmt& s) { return s.op != Op::let; });
    return out + print(head);
  }
};

class Turns {
 public:
  Turns(const Facts& facts, Diagnostics& diagnostics) : facts_(facts), diagnostics_(diagnostics) {}

  void judge(const Program& program) {
    walk(program.body, [&](const Stmt& s) {
      if (s.op != Op::warpgroup) return;
      for (const Stmt& thread : s.body)
        if (thread.op == Op::thread)
          for (const Stmt& loop : thread.body)
            if (is_loop(loop.op)) rounds_.push_back({&thread, &loop});
    });
    if (const Stmt* warpgroups = program.find(Op::warpgroups)) {
      const auto loops_of = [&](const Stmt& block) {
        for (const Stmt& loop : block.body)
          if (is_loop(loop.op)) of_warpgroups_.push_back({&block, &loop});
      };
      loops_of(*warpgroups);
      for (const Stmt& s : warpgroups->body)
        if (s.op == Op::if_) loops_of(s);
    }
    for (const Round& r : rounds_)
      for (const Stmt& s : r.loop->body)
        if (s.op == Op::wait_turn || s.op == Op::pass_turn) standing_.insert(&s);
    walk(program.body, [&](const Stmt& s) {
      const bool asks = s.op == Op::wait_turn || s.op == Op::pass_turn;
      if (asks && !standing_.count(&s))
        broken(s, "C2", "it stands outside a loop of a thread of the producer");
    });
    for (const Round& r : rounds_) {
      for (const Stmt& s : r.loop->body) {
        if (s.op == Op::wait_turn) hands_on(r, s);
        if (s.op == Op::pass_turn) passes(r, s);
      }
    }
    walk(program.body, [&](const Stmt& s) {
      if (s.op == Op::tma_add && facts_.sums_rounded.count(base_name(s.tensor())) &&
          !in_turn_.count(&s))
        broken(s, "C6", "it adds out of turn");
      if (s.op == Op::add_tile && !in_turn_.count(&s)) broken(s, "C4", "it adds out of turn");
    });
  }

 private:
  static size_t place_of(const Stmt& s, const std::vector<Stmt>& body) {
    return size_t(&s - body.data());
  }

  void hands_on(const Round& r, const Stmt& s) {
    const std::vector<Stmt>& body = r.loop->body;
    const size_t next = place_of(s, body) + 1;
    if (next == body.size() || body[next].op != Op::arrive) {
      broken(s, "C2", "no arrival follows that tells the thread that adds");
      return;
    }
    const auto barrier = facts_.barriers.find(base_name(body[next].barrier()));
    if (barrier != facts_.barriers.end() &&
        (barrier->second.arrivals != 1 || barrier->second.arrives.size() != 1))
      broken(s, "C2", "others arrive at its barrier too");
    const bool passed = std::any_of(rounds_.begin(), rounds_.end(), [&](const Round& other) {
      const std::vector<Stmt>& there = other.loop->body;
      return std::any_of(there.begin(), there.end(),
                         [&](const Stmt& p) { return ends(other, p, r, s); });
    });
    if (!passed) broken(s, "C3", "no thread that adds passes this turn on");
  }

  // n: the number of whom a wait_turn waits for, or of where(..., n, 0).
  static ExprPtr number_of(const Stmt& s) {
    const ExprPtr& e = s.number();
    return e->kind == ExprKind::where && print(e->args[2]) == "0" ? e->args[1] : e;
  }

  // Whether pass_turn p of a round ends the turn for which s waits.
  bool ends(const Round& of_p, const Stmt& p, const Round& of_s, const Stmt& s) const {
    return p.op == Op::pass_turn && s.op == Op::wait_turn && of_p.thread != of_s.thread &&
           base_name(p.tensor()) == base_name(s.tensor()) && same_place(p, s) &&
           print(p.number()) == print(binary("+", number_of(s), integer(1))) &&
           of_p.names() == of_s.names();
  }

  void passes(const Round& r, const Stmt& p) {
    const std::vector<Stmt>& body = r.loop->body;
    const size_t end = place_of(p, body);
    const Stmt* arrival = nullptr;
    for (const Round& other : rounds_)
      for (size_t n = 0; n + 1 < other.loop->body.size(); ++n) {
        const Stmt& s = other.loop->body[n];
        if (ends(r, p, other, s)) arrival = &other.loop->body[n + 1];
      }
    if (!arrival || arrival->op != Op::arrive) {
      broken(p, "C3", "no other thread waits for this turn in the same loop");
      return;
    }
    bool begun = false, added = false;  // added: and not yet in memory
    for (size_t n = 0; n < body.size(); ++n) {
      const Stmt& s = body[n];
      if (s.op == Op::wait && same(s.barrier(), arrival->barrier())) begun = true;
      if (s.op == Op::tma_store_wait) added = false;
      const auto adds = [&](const Stmt& x) {
        if (x.op != Op::tma_add) return;
        added = true;
        if (begun && n < end && is_turn_of(p, x)) in_turn_.insert(&x);
      };
      adds(s);
      walk(s.body, adds);
      if (n == end && added) broken(p, "C2", "what was added may still be on its way");
    }
    for (const Round& w : of_warpgroups_)
      if (w.names() == r.names())
        for (const Stmt& s : w.loop->body)
          if (s.op == Op::add_tile && is_turn_of(p, s) &&
              stands_between(s, w.loop->body, *arrival, body, end))
            in_turn_.insert(&s);
    add_to_columns_of_their_own(body);
  }

  // Whether a warpgroup's addition follows the wait for this arrival, and goes before one for which
  // the thread waits that passes on, at `end` of its round. Four arrivals: one warpgroup's warps.
  bool stands_between(const Stmt& added, const std::vector<Stmt>& round, const Stmt& arrival,
                      const std::vector<Stmt>& passing, size_t end) const {
    bool begun = false, told = false;
    for (const Stmt& s : round) {
      if (s.op == Op::add_tile && &s != &added) return false;
      if (s.op == Op::wait && same(s.barrier(), arrival.barrier())) begun |= &s < &added;
      if (s.op != Op::arrive || &s < &added) continue;
      const auto barrier = facts_.barriers.find(base_name(s.barrier()));
      if (barrier == facts_.barriers.end() || barrier->second.arrivals != 4 ||
          barrier->second.arrives.size() != 1)
        continue;
      for (size_t n = 0; n < end; ++n)
        told |= passing[n].op == Op::wait && same(passing[n].barrier(), s.barrier());
    }
    std::vector<Columns> taken;  // by each CTA of a cluster
    return begun && told && take(added, taken);
  }

  using Columns = std::optional<std::pair<int64_t, int64_t>>;

  // Adds those of a statement to what is taken; false where some may be taken twice.
  bool take(const Stmt& s, std::vector<Columns>& taken) const {
    bool alone = true;
    for (const Columns& columns : facts_.columns_added.at(&s)) {
      for (const Columns& other : taken)
        alone &= columns && other &&
                 (columns->first >= other->second || other->first >= columns->second);
      taken.push_back(columns);
    }
    return alone;
  }

  // Whether x adds where p passes a turn on. In a cluster each CTA has turns of its own, at the row
  // that its number is behind the first of the tile.
  bool is_turn_of(const Stmt& p, const Stmt& x) const {
    const ExprPtr row =
        facts_.ctas > 1 ? binary("+", x.row(), name(std::string(facts_.cluster->rank()))) : x.row();
    return same(p.batch(), x.batch()) && same(p.head(), x.head()) && same(p.row(), row);
  }

  // Additions to the same element have no order where nobody waits between them: what stands in a
  // round adds to columns of its own, in each CTA and each turn of a loop.
  void add_to_columns_of_their_own(const std::vector<Stmt>& round) {
    std::vector<const Stmt*> all;
    const auto adds = [&](const Stmt& s) {
      if (s.op == Op::tma_add) all.push_back(&s);
    };
    for (const Stmt& s : round) {
      adds(s);
      const bool waits = std::any_of(s.body.begin(), s.body.end(), [](const Stmt& inner) {
        return inner.op == Op::tma_store_wait;
      });
      if (!waits) walk(s.body, adds);
    }
    std::map<std::string, std::vector<Columns>> of_tensors;
    for (const Stmt* s : all)
      if (!take(*s, of_tensors[base_name(s->tensor())]))
        broken(*s, "C6", "tiles of one round may be added to the same columns in any order");
  }

  void broken(const Stmt& s, const char* label, std::string message) {
    const std::string code = fmt::format("{}.{}", word(s.op), label);
    Diagnostic& d = diagnostics_.error(code, s.span, std::move(message));
    if (const Law* l = law(code)) d.hint = fmt::format("the law: {}", l->text);
  }

  const Facts& facts_;
  Diagnostics& diagnostics_;
  std::vector<Round> rounds_, of_warpgroups_;
  std::set<const Stmt*> standing_, in_turn_;
};

}  // namespace

void judge_turns(const Program& program, const Facts& facts, Diagnostics& diagnostics) {
  if (facts.has_turns && !facts.incomplete) Turns(facts, diagnostics).judge(program);
}

}  // namespace kw::tl
