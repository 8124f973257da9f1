// What happens along the paths of a warpgroups block, with its steps inlined: products in flight,
// and tiles on their way to global memory.
//
//   wgmma s = q_r @ k_s[t + 1].T     in flight: s
//   wgmma_add acc += p @ v_s[t]      in flight: s, acc
//   wgmma_wait 1: s                       completes all but the latest one: s
//   map s[i, j] = ...                     lawful from here on
//
// Products that add to one accumulator may follow each other while it is in flight:
//
//   for t, k in range_down_counted(...):                in flight: acc, which reads step t
//       wgmma_add acc += a_s[me][t + 1] @ b_s[t + 1]
//       wgmma_wait_group 1                   the product before has been done: its tiles may be
//       freed arrive free[t]
//                                         and again: the step t + 1 is t one turn on
//
// ptxas serialises products whose registers are touched in flight, and a wait that names the wrong
// tile lets the compiler move their uses before it. So the set in flight must be known at every
// statement: the same on both sides of a branch, and empty where a loop begins or repeats.
//
// A shared tile that is stored: tma_store_wait_read, sync_warpgroup | store | fence_async,
// sync_warpgroup | tma_store, and again. Loops are followed twice, the second time from what the
// first one left.
#include <algorithm>

#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

// A use of a ring that a product reads: k_s[t + 1] is ("k_s", "t + 1").
struct RingUse {
  std::string ring, use;
};
struct Flight {
  const Stmt* issue;
  std::string accumulator, left;
  std::vector<RingUse> reads;
  bool complete = false;  // by a wgmma_wait_group, which names no accumulator
  bool operator==(const Flight& o) const { return issue == o.issue; }
};

bool adds_in_flight(Op op) { return adds_product(op) && traits(op).async == Async::wgmma; }

// What a use is called when its counter has gone on by one: t + 1 is t, and t is t - 1. Empty if it
// cannot be said so.
std::string one_turn_on(const std::string& use, const std::string& counter) {
  if (use == counter + " + 1") return counter;
  if (use == counter) return counter + " - 1";
  return use.find(counter) == std::string::npos ? use : "";
}

enum class Phase { writable, written, published, visible, leaving, left };

struct State {
  std::vector<Flight> flights;         // in the order of issue
  std::map<std::string, Phase> tiles;  // by shared tile; writable unless named
  std::set<std::string> unsynced;      // tiles stored since the last sync
  std::set<std::string> read;        // tiles that some warp may still read: no sync_warpgroup since
  std::set<const Stmt*> unfinished;  // tma_store without tma_store_wait after it
};

class Flow {
 public:
  Flow(const Facts& facts, Diagnostics& diagnostics) : facts_(facts), diagnostics_(diagnostics) {}

  // As warpgroup `me`; -1: one of warpgroups that are all alike.
  void warpgroups(const Stmt& block, int me) {
    me_ = me;
    walk(block.body, [&](const Stmt& s) {
      if (s.op == Op::step) steps_[s.name()] = &s;
      if (s.op == Op::flag)
        for (const Item& d : s.names()) flags_.insert(d.name);
    });
    find_storing_thread(block);
    State state;
    run(block.body, state);
    none_in_flight(state, block.span, "the warpgroup ends here");
    for (const auto& [s, message] : idle_)
      if (!useful_.count(s)) broken("wgmma_wait.C3", s->span, message);
    for (const Stmt* s : state.unfinished)
      broken("tma_store.C5", s->span,
             fmt::format("no tma_store_wait follows: the kernel may end before `{}` is written",
                         base_name(s->tensor())));
  }

 private:
  void broken(const std::string& code, Span span, std::string message, std::string note = "",
              Span other = {}) {
    if (!reported_.insert({code, span.begin}).second) return;
    Diagnostic& d = diagnostics_.error(code, std::move(span), std::move(message));
    if (!note.empty()) d.notes.push_back({std::move(note), std::move(other)});
    if (const Law* l = law(code)) d.hint = fmt::format("the law: {}", l->text);
  }

  static std::string code(const Flight& f, const char* label) {
    return fmt::format("{}.{}", word(f.issue->op), label);
  }

  void run(const std::vector<Stmt>& body, State& state) {
    for (const Stmt& s : body) statement(s, state);
  }

  void statement(const Stmt& s, State& state) {
    touches(s, state);
    if (is_loop(s.op)) return loop(s, state);
    if (is(s.op, Family::contract)) return product(s, state);
    switch (s.op) {
      case Op::thread:
        return thread(s, state);
      case Op::if_:
        return branch(s, state);
      case Op::call:
        return call(s, state);
      case Op::wgmma_wait:
        return wgmma_wait(s, state);
      case Op::wgmma_wait_group:
        return wgmma_wait_group(s, state);
      case Op::wait:
        return wait(s, state);
      case Op::wait_free:
        return wait_free(s, state);
      case Op::count:
        return turn_on(state, s.counter());
      case Op::arrive:
        return arrive(s, state);
      case Op::load:
        state.read.insert(base_name(s.src()));
        return;
      case Op::store:
      case Op::store_columns:
      case Op::store_transposed:
        return store(s, state);
      case Op::fence_async:
        return fence_async(s, state);
      case Op::sync_warpgroup:
      case Op::sync_block:
      case Op::order_wait:  // its own four warps come to it, too
        return sync(state);
      case Op::copy_out:
      case Op::copy_tile_out:
        return copy_out(s, state);
      case Op::tma_store:
        return tma_store(s, state);
      case Op::tma_store_wait_read:
      case Op::tma_store_wait:
        return stored(s, state);
      default:
        return;  // a step's body counts where it is called
    }
  }

  void thread(const Stmt& s, State& state) {
    const Stmt* outer = thread_;
    thread_ = &s;
    run(s.body, state);
    thread_ = outer;
  }

  // A step that is told true or false takes the same branches each time it is told so.
  void call(const Stmt& s, State& state) {
    const Stmt& step = *steps_.at(s.name());
    const std::map<std::string, ExprPtr> outer = told_;
    for (size_t n = 0; n < step.params().size() && n < s.arguments().size(); ++n) {
      const ExprPtr& e = s.arguments()[n].expr;
      if (e->is_name("true") || e->is_name("false"))
        told_[step.params()[n].name] = e;
      else
        told_.erase(step.params()[n].name);
    }
    run(step.body, state);
    told_ = outer;
  }

  std::optional<bool> is_decided(const ExprPtr& condition) const {
    return decided(facts_, rewrite(condition, [&](const ExprPtr& e) -> ExprPtr {
                     const auto told =
                         e->kind == ExprKind::name ? told_.find(e->text) : told_.end();
                     return told == told_.end() ? nullptr : told->second;
                   }));
  }

  void branch(const Stmt& s, State& state) {
    for (const auto& [role, takers] : facts_.roles)
      if (role == &s) {
        if (me_ >= 0 && (takers >> me_ & 1)) run(s.body, state);
        return;
      }
    if (const std::optional<bool> taken = is_decided(s.condition())) {
      if (*taken) run(s.body, state);
      return;
    }
    const bool on_flag = std::any_of(flags_.begin(), flags_.end(), [&](const std::string& f) {
      return mentions(s.condition(), f);
    });
    State taken = state;
    const Stmt* outer = flag_branch_;
    if (on_flag) flag_branch_ = &s;
    run(s.body, taken);
    flag_branch_ = outer;
    // Under a flag C5 of the product has said it; go on as if the branch were taken.
    if (taken.flights != state.flights && !on_flag)
      broken("if.C1", s.span,
             fmt::format("in flight are {} if it is taken, {} if not", names(taken), names(state)));
    state = join(state, taken, taken.flights);
  }

  void loop(const Stmt& s, State& state) {
    const auto waits = std::find_if(s.body.begin(), s.body.end(),
                                    [](const Stmt& b) { return b.op == Op::wgmma_wait_group; });
    const bool in_flight = waits != s.body.end();
    const bool may_repeat = is(s.op, Family::loop);  // with products in flight, the same each time
    if (!in_flight) none_in_flight(state, s.span, "the loop begins here");
    for (int turn = 0; turn < 2; ++turn) {
      State inside = state;
      run(s.body, inside);
      if (s.op == Op::range_down_counted || s.op == Op::range_down_rolled)
        turn_on(inside, s.counter());
      if (in_flight)
        same_in_flight(*waits, state, inside, s);
      else if (!may_repeat || (turn == 1 && faces(inside) != faces(state)))
        none_in_flight(inside, s.span, "the loop repeats here");
      // Behind no turn there is less in flight: nothing depends on it.
      state = join(state, inside, in_flight ? state.flights : inside.flights);
    }
  }

  // In the products' eyes, what a use is called from here on.
  static void turn_on(State& state, const std::string& counter) {
    for (Flight& f : state.flights)
      for (RingUse& read : f.reads) read.use = one_turn_on(read.use, counter);
  }

  static std::vector<std::string> faces(const State& state) {
    std::vector<std::string> out;
    for (const Flight& f : state.flights) {
      out.push_back(f.accumulator + (f.complete ? " (done)" : ""));
      for (const RingUse& r : f.reads)
        out.back() += fmt::format(", reading {}[{}]", r.ring, r.use.empty() ? "?" : r.use);
    }
    if (out.empty()) out.push_back("nothing");
    return out;
  }

  // wgmma_wait_group.C2
  void same_in_flight(const Stmt& waits, const State& begins, const State& repeats,
                      const Stmt& loop) {
    const auto there = faces(begins), here = faces(repeats);
    if (there != here)
      broken("wgmma_wait_group.C2", waits.span,
             fmt::format("where the loop repeats {} is in flight, where it begins {}",
                         fmt::join(here, "; "), fmt::join(there, "; ")),
             "the loop is here", loop.span);
  }

  // Behind a or b, whichever it is; in flight are `flights`, of one of them.
  static State join(const State& a, const State& b, const std::vector<Flight>& flights) {
    State out = a;
    out.flights = flights;
    for (const auto& [tile, phase] : b.tiles) {
      const auto other = a.tiles.find(tile);
      const Phase before = other == a.tiles.end() ? Phase::writable : other->second;
      if (before != phase) out.tiles[tile] = Phase::leaving;  // what may still be on its way, is
    }
    out.unfinished.insert(b.unfinished.begin(), b.unfinished.end());
    out.read.insert(b.read.begin(), b.read.end());
    out.unsynced.insert(b.unsynced.begin(), b.unsynced.end());
    return out;
  }

  void none_in_flight(State& state, const Span& where, const char* what) {
    for (const Flight& f : state.flights)
      broken(code(f, "C8"), f.issue->span,
             fmt::format("no wgmma_wait has named `{}` yet", f.accumulator), what, where);
    state.flights.clear();
  }

  static std::string names(const State& state) {
    std::vector<std::string> out;
    for (const Flight& f : state.flights) out.push_back("`" + f.accumulator + "`");
    return out.empty() ? "no products" : fmt::format("{}", fmt::join(out, ", "));
  }

  // ---- products
  void touches(const Stmt& s, const State& state) {
    if (s.op == Op::wgmma_wait) return;
    for (const Flight& f : state.flights) {
      const bool adds = adds_in_flight(s.op) && base_name(s.acc()) == f.accumulator;
      if (!adds && names_tile(s, f.accumulator) && touched_.insert(f.issue).second)
        broken(
            code(f, "C6"), s.span,
            fmt::format("`{}` touches `{}`, whose product is in flight", word(s.op), f.accumulator),
            "the product is issued here", f.issue->span);
      const bool writes = (s.op == Op::to_operand && base_name(s.dst()) == f.left) ||
                          (s.op == Op::load && base_name(s.dst()) == f.left);
      if (writes)
        broken(code(f, "C7"), s.span,
               fmt::format("`{}` writes `{}`, which a product in flight reads", word(s.op), f.left),
               "the product is issued here", f.issue->span);
    }
  }

  static bool names_tile(const Stmt& s, const std::string& tile) {
    for (const Field& f : s.fields)
      for (const Item& item : f.items)
        if (item.name == tile || (item.expr && mentions(item.expr, tile))) return true;
    return false;
  }

  void product(const Stmt& s, State& state) {
    if (traits(s.op).async != Async::none) return issue(s, state);
    for (const ExprPtr& side : {s.a(), s.b()}) state.read.insert(base_name(side));
  }

  void issue(const Stmt& s, State& state) {
    Flight f{&s, base_name(s.acc()), base_name(s.a()), {}};
    for (const ExprPtr& tile : {s.a(), s.b()})
      if (tile->kind == ExprKind::index) f.reads.push_back({base_name(tile), print(tile->args[1])});
    if (flag_branch_)
      broken(code(f, "C5"), s.span,
             fmt::format("the product of `{}` depends on `{}`", f.accumulator,
                         print(flag_branch_->condition())),
             "the branch is here", flag_branch_->span);
    for (const ExprPtr& tile : {s.a(), s.b()}) state.read.insert(base_name(tile));
    state.flights.push_back(std::move(f));
  }

  void wgmma_wait(const Stmt& s, State& state) {
    const int64_t pending = std::stoll(s.pending()->text), flying = in_flight(state);
    std::set<std::string> named, completed;
    for (const Item& a : s.items(Hole::acc)) named.insert(base_name(a.expr));
    complete_all_but(pending, state);
    for (const Flight& f : state.flights) completed.insert(f.accumulator);
    for (const Flight& f : state.flights)
      if (!f.complete) completed.erase(f.accumulator);
    std::set<std::string> early;
    for (const Flight& f : state.flights)
      if (!f.complete && named.count(f.accumulator)) early.insert(f.accumulator);
    const bool some = std::any_of(named.begin(), named.end(),
                                  [&](const std::string& n) { return completed.count(n) > 0; });
    if (some)
      useful_.insert(&s);
    else if (early.empty() || pending >= flying)
      idle_.emplace(&s, fmt::format("{} products are in flight, it leaves {}", flying, pending));
    if (!early.empty() && pending < flying)
      broken("wgmma_wait.C2", s.span,
             fmt::format("it completes `{}`, it names `{}`", fmt::join(completed, "`, `"),
                         fmt::join(named, "`, `")),
             "the first product in flight is here", state.flights[0].issue->span);
    // After C2, go on as if the wait had named what it completes; after C3, as if it had completed
    // what it names.
    const std::set<std::string>& done = !early.empty() && pending < flying ? completed : named;
    std::erase_if(state.flights, [&](const Flight& f) { return done.count(f.accumulator) > 0; });
  }

  static int64_t in_flight(const State& state) {
    return std::count_if(state.flights.begin(), state.flights.end(),
                         [](const Flight& f) { return !f.complete; });
  }

  // What is done reads nothing any more.
  static void complete_all_but(int64_t pending, State& state) {
    int64_t later = in_flight(state);
    for (Flight& f : state.flights)
      if (!f.complete && later-- > pending) {
        f.complete = true;
        f.left.clear();
        f.reads.clear();
      }
  }

  void wgmma_wait_group(const Stmt& s, State& state) {
    const int64_t pending = std::stoll(s.pending()->text), flying = in_flight(state);
    if (pending >= flying && pending > 0)
      broken("wgmma_wait_group.C1", s.span,
             fmt::format("{} products are in flight, it leaves {}", flying, pending));
    complete_all_but(pending, state);
    // One that is done is forgotten where a later one of the same accumulator is in flight.
    for (size_t n = 0; n < state.flights.size();) {
      const Flight& f = state.flights[n];
      const bool later =
          std::any_of(state.flights.begin() + n + 1, state.flights.end(),
                      [&](const Flight& other) { return other.accumulator == f.accumulator; });
      if (f.complete && later)
        state.flights.erase(state.flights.begin() + n);
      else
        ++n;
    }
  }

  // The slot that the storing thread has given back.
  void wait_free(const Stmt& s, State& state) {
    for (const auto& [tile, barrier] : facts_.freed_by)
      if (barrier == base_name(s.barrier())) phase(state, tile) = Phase::writable;
  }

  // The slot that has been filled anew: what it held before has left.
  void wait(const Stmt& s, State& state) {
    const auto filled = facts_.fills.find(base_name(s.barrier()));
    if (filled != facts_.fills.end()) phase(state, filled->second) = Phase::writable;
  }

  void arrive(const Stmt& s, State& state) {
    const ExprPtr& b = s.barrier();
    std::set<std::string> handed;  // a tile may be copied to several places
    if (const auto given = facts_.hands_over.find(base_name(b)); given != facts_.hands_over.end())
      for (const Stmt* copy : given->second)
        if (handed.insert(base_name(copy->src())).second) hand_over(s, *copy, state);
    for (const Flight& f : state.flights)
      for (const RingUse& read : f.reads) {
        const auto freed = facts_.freed_by.find(read.ring);
        if (freed != facts_.freed_by.end() && freed->second == base_name(b) &&
            read.use == print(b->args[1]))
          broken("arrive.C2", s.span,
                 fmt::format("`{}[{}]` is given back while the product of `{}` reads it", read.ring,
                             read.use, f.accumulator),
                 "the product is issued here", f.issue->span);
      }
  }

  // ---- tiles on their way out
  // To a thread of the loader, which stores it.
  void hand_over(const Stmt& s, const Stmt& copy, State& state) {
    const std::string tile = base_name(copy.src());
    Phase& p = phase(state, tile);
    if (p != Phase::published && p != Phase::visible)
      broken(fmt::format("{}.C4", word(copy.op)), s.span,
             fmt::format(
                 "`{}` is handed over to be stored: {}", tile,
                 p == Phase::written ? "it is not published" : "nothing has been stored in it"));
    p = Phase::leaving;
  }

  void find_storing_thread(const Stmt& block) {
    walk(block.body, [&](const Stmt& s) {
      if (s.op != Op::thread) return;
      for (const Stmt& inner : s.body)
        if (inner.op == Op::tma_store) storing_ = &s;
    });
  }

  static Phase& phase(State& state, const std::string& tile) {
    return state.tiles.try_emplace(tile, Phase::writable).first->second;
  }

  void store(const Stmt& s, State& state) {
    Phase& p = phase(state, base_name(s.dst()));
    // Whom a warpgroup tells by a tile that stays gives it back by a barrier: the schedules
    // reading.
    const bool leaves = facts_.stored.count(base_name(s.dst())) > 0;
    if (leaves && (p == Phase::leaving || p == Phase::left))
      broken(
          fmt::format("{}.{}", word(s.op), s.op == Op::store_transposed ? "C4" : "C3"), s.span,
          p == Phase::leaving
              ? fmt::format("`{}` may still be on its way to global memory", base_name(s.dst()))
              : fmt::format("only one thread knows that `{}` has left: a sync_warpgroup is missing",
                            base_name(s.dst())));
    const std::string tile = base_name(s.dst());
    // Slots of a ring that a barrier gives back, where the whole of it is waited for: the schedules
    // reading. A product of this warpgroup's that reads another use is in another slot: of this one
    // the warpgroup has told that it is done, which it may not before the product is (arrive.C2).
    const bool ring = s.op == Op::store_transposed && s.dst()->kind == ExprKind::index &&
                      (!leaves || facts_.freed_by.contains(tile));
    const std::string use = ring ? print(s.dst()->args[1]) : "";
    const bool flies = std::any_of(state.flights.begin(), state.flights.end(), [&](auto& f) {
      return std::any_of(f.reads.begin(), f.reads.end(), [&](const RingUse& read) {
        return read.ring == tile && (!ring || read.use == use);
      });
    });
    if (flies || (state.read.count(tile) && !ring))
      broken(fmt::format("{}.C4", word(s.op)), s.span,
             flies ? fmt::format("a product in flight reads `{}`", tile)
                   : fmt::format("another warp of this warpgroup may still read `{}`", tile));
    p = Phase::written;
    state.unsynced.insert(tile);
  }

  void copy_out(const Stmt& s, State& state) {
    if (state.unsynced.count(base_name(s.src())))
      broken(std::string(word(s.op)) + ".C5", s.span,
             fmt::format("other warps may not have stored their rows of `{}` yet",
                         base_name(s.src())));
    state.read.insert(base_name(s.src()));
    // It has left when this returns; that other warps may still read it stands in state.read.
    phase(state, base_name(s.src())) = Phase::writable;
  }

  void fence_async(const Stmt& s, State& state) {
    bool any = false;
    for (auto& [tile, p] : state.tiles)
      if (p == Phase::written) {
        p = Phase::published;
        any = true;
      }
    if (!any)
      broken("fence_async.C1", s.span, "nothing has been stored since the last fence_async");
  }

  static void sync(State& state) {
    state.unsynced.clear();
    std::set<std::string> flying;
    for (const Flight& f : state.flights)
      for (const RingUse& read : f.reads) flying.insert(read.ring);
    state.read = std::move(flying);
    for (auto& [tile, p] : state.tiles) {
      if (p == Phase::left)
        p = Phase::writable;
      else if (p == Phase::published)
        p = Phase::visible;
    }
  }

  void tma_store(const Stmt& s, State& state) {
    const std::string tile = base_name(s.src());
    Phase& p = phase(state, tile);
    if (p != Phase::visible) {
      const char* why =
          p == Phase::written ? "it is not published"
          : p == Phase::published
              ? "the other warps may not have published theirs: a sync_warpgroup is missing"
              : "nothing has been stored in it";
      broken("tma_store.C4", s.span, fmt::format("`{}` is copied: {}", tile, why));
    }
    p = Phase::leaving;
    state.unfinished.insert(&s);
  }

  void stored(const Stmt& s, State& state) {
    const bool same = thread_ && storing_ && equal(thread_->number(), storing_->number());
    if (!same) {
      broken(fmt::format("{}.C1", word(s.op)), s.span,
             !storing_ ? "no thread of this warpgroup stores"
             : thread_ ? fmt::format("thread {} waits, thread {} stores", print(thread_->number()),
                                     print(storing_->number()))
                       : "all threads wait, one stores",
             storing_ ? "the storing thread is here" : "", storing_ ? storing_->span : Span{});
      return;
    }
    for (auto& [tile, p] : state.tiles)
      if (p == Phase::leaving) p = Phase::left;
    if (s.op == Op::tma_store_wait) state.unfinished.clear();
  }

  const Facts& facts_;
  Diagnostics& diagnostics_;
  std::map<std::string, const Stmt*> steps_;
  std::set<std::string> flags_;
  std::set<std::pair<std::string, uint32_t>> reported_;
  std::map<std::string, ExprPtr> told_;      // parameters of the step that is run: true or false
  std::map<const Stmt*, std::string> idle_;  // waits that completed nothing once, and what to say
  std::set<const Stmt*> useful_;             // and those that did
  std::set<const Stmt*> touched_;            // products of which C6 has been said
  int me_ = -1;
  const Stmt* thread_ = nullptr;       // the single thread that runs the statement
  const Stmt* storing_ = nullptr;      // the thread that stores
  const Stmt* flag_branch_ = nullptr;  // the branch on a flag around the statement
};

}  // namespace

void judge_flow(const Stmt& warpgroups, const Facts& facts, Diagnostics& diagnostics) {
  Flow flow(facts, diagnostics);
  if (facts.roles.empty()) return flow.warpgroups(warpgroups, -1);
  std::set<std::vector<bool>> seen;  // warpgroups with the same roles do the same
  for (int64_t w = 0; w < facts.warpgroups(); ++w) {
    std::vector<bool> taken;
    for (const auto& role : facts.roles) taken.push_back(role.second >> w & 1);
    if (seen.insert(taken).second) flow.warpgroups(warpgroups, static_cast<int>(w));
  }
}

}  // namespace kw::tl
