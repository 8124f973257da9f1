// Barriers and queues. One statement alone cannot say whether a barrier is right: its arrivals are
// those of everybody who completes a use of it. So each mention is noted while the statements are
// visited, and judged when the whole module is known.
//
// How many arrive at one use: a tma_load once, as often as the loops between the use's index and
// the copy repeat it (`for r in range(WARPGROUPS)` around `arrive q_full[u]`: WARPGROUPS times); a
// warpgroup four times, once a warp, and all warpgroups of the block do the same; a single thread
// once.
#include <algorithm>

#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

// Whether a turn of the loop changes a name of the index.
bool changes(const Stmt& loop, const ExprPtr& index) {
  const auto names = [&](const Stmt& s, Hole hole) {
    if (!s.has(hole)) return false;
    for (const Item& item : s.items(hole))
      if (!item.name.empty() && mentions(index, item.name)) return true;
    return false;
  };
  if (names(loop, Hole::use) || names(loop, Hole::index) || names(loop, Hole::counter)) return true;
  bool found = false;
  walk(loop.body, [&](const Stmt& s) {
    if (s.op == Op::count || s.op == Op::range_down_counted || s.op == Op::range_down_rolled)
      found |= names(s, Hole::counter);
  });
  return found;
}

BarrierUse use_of(Check& c, const ExprPtr& barrier, int64_t arrivals) {
  const ExprPtr& index = barrier->args.at(1);
  BarrierUse use{&c.stmt, c.agent(), arrivals, print(index), nullptr, 1, false, c.stmt.span};
  for (auto p = c.parents.rbegin(); p != c.parents.rend() && !use.loop; ++p) {
    const Stmt& s = **p;
    use.conditional |= s.op == Op::if_;
    if (!is_loop(s.op)) continue;
    if (changes(s, index)) {
      use.loop = &s;
    } else {
      const std::optional<int64_t> turns = s.op == Op::range ? c.constant(s.end()) : std::nullopt;
      use.times = turns && use.times ? std::optional(*use.times * *turns) : std::nullopt;
    }
  }
  return use;
}

BarrierFacts& facts_of(Check& c, const ExprPtr& barrier) {
  return c.facts.barriers[c.find(barrier)->name];
}

}  // namespace

void law_init(Check& c) {
  if (c.parents.size() != 1 || c.parents[0]->op != Op::kernel)
    c.broken("C1", c.stmt.span, "barriers are initialised outside the kernel's own block");
  for (const Item& a : c.stmt.barriers()) {
    const Symbol* s = a.expr->kind == ExprKind::name ? c.scope.find(a.expr->text) : nullptr;
    if (!s || (s->category != Category::barrier && s->category != Category::queue))
      c.broken("C3", a.expr->span,
               fmt::format("`{}` is {}", print(a.expr),
                           s ? word(s->category) : "no declared barrier or queue"));
    else if (!c.facts.initialised[s->name].empty())
      c.broken("C2", a.expr->span, fmt::format("`{}` is initialised twice", s->name))
          .notes.push_back({"the first time is here", c.facts.initialised[s->name][0]->span});
    if (s) c.facts.initialised[s->name].push_back(&c.stmt);
  }
}

void law_wait(Check& c) {
  facts_of(c, c.stmt.barrier()).waits.push_back(use_of(c, c.stmt.barrier(), 0));
}
void law_wait_free(Check& c) {
  facts_of(c, c.stmt.barrier()).frees.push_back(use_of(c, c.stmt.barrier(), 0));
}
void law_arrive(Check& c) {
  const bool one = c.by_one_thread();
  if (const Symbol* b = c.find(c.stmt.barrier()); one && b->ctas)
    c.broken("C3", c.stmt.span, fmt::format("one thread arrives at `{}`", b->name))
        .notes.push_back({fmt::format("`{}` is declared here", b->name), b->span});
  const int64_t warps = c.warpgroups_block() ? c.warps() : 4;
  facts_of(c, c.stmt.barrier())
      .arrives.push_back(use_of(c, c.stmt.barrier(), one ? warps / 4 : warps));
}
void note_copy(Check& c) {
  facts_of(c, c.stmt.barrier()).copies.push_back(use_of(c, c.stmt.barrier(), 1));
}

namespace {

void stands_in_warpgroups(Check& c) {
  if (!c.warpgroups_block())
    c.broken("C2", c.stmt.span,
             fmt::format("`{}` stands outside the warpgroups block", word(c.stmt.op)));
}
// Under a toggle that is off nothing happens: `if PING_PONG:` with PING_PONG = false.
bool never_runs(const Check& c) {
  return std::any_of(c.parents.begin(), c.parents.end(), [&](const Stmt* s) {
    return s->op == Op::if_ && decided(c.facts, s->condition()) == false;
  });
}
void warpgroups_take_turns(Check& c) {
  const int64_t warpgroups = c.facts.warpgroups();
  if (c.warpgroups_block() && c.facts.warpgroups_are_known() && warpgroups < 2 && !never_runs(c))
    c.broken("C1", c.stmt.span,
             fmt::format("`{}` needs two or more consumers; this kernel has one", word(c.stmt.op)));
  stands_in_warpgroups(c);
  const std::optional<int64_t> number = c.constant(c.stmt.warpgroup());
  if (number && (*number < 0 || (c.facts.warpgroups_are_known() && *number >= warpgroups)))
    c.broken("C3", c.stmt.warpgroup()->span, fmt::format("there is no warpgroup {}", *number));
  if (depends_on_launch(c.stmt.warpgroup(), c.scope))
    c.broken("C4", c.stmt.warpgroup()->span,
             fmt::format("whose turn it is, `{}`, differs from launch to launch or from block to "
                         "block",
                         print(c.stmt.warpgroup())));
}

}  // namespace

void law_sync_warpgroup(Check& c) {
  const Stmt* warpgroups = c.warpgroups_block();
  if (warpgroups && !c.stmt.warpgroup()->is_name(warpgroups->me()))
    c.broken("C1", c.stmt.warpgroup()->span,
             fmt::format("the warpgroup's own number is `{}`, not `{}`", warpgroups->me(),
                         print(c.stmt.warpgroup())))
        .notes.push_back({"it is declared here", warpgroups->span});
  stands_in_warpgroups(c);
}
void law_order_arrive(Check& c) { warpgroups_take_turns(c); }
void law_order_wait(Check& c) { warpgroups_take_turns(c); }

// C1: the table; C2, C3: laws_flow.cpp.
void law_wgmma_wait(Check&) {}

// C1, C2: laws_flow.cpp.
void law_wgmma_wait_group(Check&) {}

void law_fence_async(Check& c) { stands_in_warpgroups(c); }

namespace {
// Among the warpgroups laws_flow.cpp knows the thread that stores.
void waits_for_its_stores(Check& c) {
  const Stmt* thread = c.inside(Op::warpgroup) ? c.inside(Op::thread) : nullptr;
  if (!thread) return;
  bool stores = false;
  walk(thread->body, [&](const Stmt& s) {
    stores |= is(s.op, Family::copy_out) && traits(s.op).async == Async::tma;
  });
  if (!stores) c.broken("C1", c.stmt.span, "this thread stores nothing");
}
}  // namespace
void law_tma_store_wait_read(Check& c) { waits_for_its_stores(c); }
void law_tma_store_wait(Check& c) { waits_for_its_stores(c); }

namespace {

class Judge {
 public:
  Judge(const Program& program, Facts& facts, Diagnostics& diagnostics)
      : program_(program), facts_(facts), diagnostics_(diagnostics) {}

  void all() {
    levels();
    for (auto& [name, b] : facts_.barriers) barrier(b);
    for (auto& [name, q] : facts_.queues) queue(q);
    judge_ctas(facts_, diagnostics_);
    judge_parts(facts_, diagnostics_);
    judge_rows_behind(program_, facts_, diagnostics_);
    judge_combined(program_, facts_, diagnostics_);
    judge_turns(program_, facts_, diagnostics_);
    walk(program_.body, [&](const Stmt& s) {
      if (s.op == Op::flag && !facts_.incomplete && !facts_.flags_set.count(&s))
        broken("flag.C1", s.span,
               fmt::format("no online_max, any_exceeds or any_differs sets `{}`",
                           s.names().front().name));
    });
    walk(program_.body, [&](const Stmt& s) { reads_transposed(s); });
    if (facts_.shared && facts_.shared_bytes > 227 * 1024)
      broken(
          "shared.C2", facts_.shared->span,
          fmt::format("{} bytes of shared memory, there are {}", facts_.shared_bytes, 227 * 1024));
  }

 private:
  Diagnostic& broken(const char* code, Span span, std::string message) {
    Diagnostic& d = diagnostics_.error(code, std::move(span), std::move(message));
    if (const Law* l = law(code)) d.hint = fmt::format("the law: {}", l->text);
    return d;
  }

  // store_transposed.C3: a warp has columns of the tile, and who reads rows would read others'
  // columns.
  void reads_transposed(const Stmt& s) {
    if (traits(s.op).by == By::none) return;  // it declares
    for (const Field& f : s.fields) {
      const bool whole = is(s.op, Family::contract) || s.op == Op::tma_add ||
                         s.op == Op::tma_send || s.op == Op::load;
      if (whole || !reads(access(s.op, f.hole))) continue;
      for (const Item& item : f.items) {
        const auto tile = facts_.transposed.find(item.expr ? base_name(item.expr) : item.name);
        if (tile != facts_.transposed.end())
          broken("store_transposed.C3", s.span,
                 fmt::format("`{}` reads `{}`, which holds a transposed tile", word(s.op),
                             tile->first))
              .notes.push_back({"it is stored here", tile->second->span});
      }
    }
  }

  void levels() {
    const Level level = facts_.level == "sketch"  ? Level::sketch
                        : facts_.level == "sized" ? Level::sized
                                                  : Level::scheduled;
    walk(program_.body, [&](const Stmt& s) {
      if (row(s.op).level > level) {
        static constexpr std::string_view names[] = {"sketch", "sized", "scheduled"};
        broken("level.C2", s.span,
               fmt::format("the module's level is {}, `{}` is of level {}", facts_.level,
                           word(s.op), names[static_cast<int>(row(s.op).level)]));
      }
    });
  }

  void initialised(const Symbol& s) {
    if (program_.kernel() && facts_.initialised[s.name].empty())
      broken("init.C2", s.span, fmt::format("`{}` is never initialised", s.name)).hint =
          fmt::format("add it to the kernel's `init`: init {}", s.name);
  }

  void barrier(BarrierFacts& b) {
    initialised(b.symbol);
    const std::string& name = b.symbol.name;
    if (!b.copies.empty() && b.symbol.ctas)
      broken("cluster_barrier.C3", b.copies[0].span,
             fmt::format("a copy completes `{}`, which every CTA of the cluster would have to do",
                         name))
          .notes.push_back({fmt::format("`{}` is declared here", name), b.symbol.span});
    if (!b.copies.empty() && !b.arrives.empty())
      broken("barrier.C2", b.arrives[0].span,
             fmt::format("`{}` is completed by a copy and by arriving", name))
          .notes.push_back({"the copy is here", b.copies[0].span});
    else
      arrivals(b);  // C3
    const bool waited = !b.waits.empty() || !b.frees.empty(),
               completed = !b.copies.empty() || !b.arrives.empty();
    if (waited != completed && !facts_.incomplete && program_.kernel())
      broken("barrier.C4", b.symbol.span,
             waited ? fmt::format("`{}` is waited for, and nothing completes it", name)
                    : fmt::format("`{}` is completed, and nothing waits for it", name))
          .notes.push_back({waited ? "the wait is here" : "it is completed here",
                            (waited             ? b.waits.empty() ? b.frees[0] : b.waits[0]
                                         : b.copies.empty() ? b.arrives[0]
                                                : b.copies[0])
                                .span});
    hands_over(b);
    waiting(b);
  }

  // tma_store.C4: only the warpgroups can say that they have stored a tile.
  void hands_over(const BarrierFacts& b) {
    const auto copies = facts_.hands_over.find(b.symbol.name);
    if (copies == facts_.hands_over.end() || facts_.incomplete) return;
    const bool by_warpgroups =
        std::any_of(b.arrives.begin(), b.arrives.end(), [](const BarrierUse& a) {
          return a.agent && (a.agent->op == Op::warpgroups || a.agent->op == Op::if_);
        });
    if (by_warpgroups) return;
    for (const Stmt* copy : copies->second)
      broken(fmt::format("{}.C4", word(copy->op)).c_str(), copy->span,
             fmt::format("it waits for `{}`, where no warpgroup arrives", b.symbol.name))
          .notes.push_back({fmt::format("`{}` is declared here", b.symbol.name), b.symbol.span});
  }

  void waiting(const BarrierFacts& b) {
    const std::string& name = b.symbol.name;
    for (const BarrierUse& f : b.frees) {
      if (!b.copies.empty())
        broken("wait_free.C2", f.span,
               fmt::format(
                   "a copy completes `{}`: it says that a tile has come, not that a slot is free",
                   name))
            .notes.push_back({"the copy is here", b.copies[0].span});
      // Several warpgroups may give slots back to one another alone; whether all of them go on, the
      // schedules reading says.
      const bool several = f.agent && f.agent->op == Op::warpgroups && facts_.warpgroups() > 1 &&
                           std::all_of(b.frees.begin(), b.frees.end(),
                                       [&](const BarrierUse& x) { return x.agent == f.agent; });
      for (const BarrierUse& a : b.arrives)
        if (a.agent == f.agent && !several)
          broken("wait_free.C3", f.span,
                 fmt::format("who waits for `{}` arrives there itself", name))
              .notes.push_back({"it arrives here", a.span});
    }
    if (b.waits.empty() || b.frees.empty() || !b.copies.empty()) return;
    const auto own = std::find_if(b.waits.begin(), b.waits.end(), [&](const BarrierUse& w) {
      return std::any_of(b.arrives.begin(), b.arrives.end(),
                         [&](const BarrierUse& a) { return a.agent == w.agent; });
    });
    const BarrierUse& blamed = own == b.waits.end() ? b.frees[0] : *own;
    const BarrierUse& other = own == b.waits.end() ? b.waits[0] : b.frees[0];
    broken("wait.C2", blamed.span,
           fmt::format("`{}` is waited for by `{}` here and by `{}` elsewhere", name,
                       word(blamed.stmt->op), word(other.stmt->op)))
        .notes.push_back({"elsewhere is here", other.span});
  }

  // barrier.C3
  void arrivals(const BarrierFacts& b) {
    if (facts_.incomplete || !facts_.warpgroups_are_known()) return;
    int64_t arrive = 0;
    std::string how;
    Span first;
    if (!b.arrives.empty()) {
      std::set<Agent> seen;
      for (const BarrierUse& a : b.arrives)
        if (seen.insert(a.agent).second) arrive += a.arrivals;
      how = "arrive";
      first = b.arrives[0].span;
    } else {
      // Every use by one agent must have the same number of copies, wherever it is filled.
      std::map<Agent, std::map<std::pair<const Stmt*, std::string>, int64_t>> copies;
      for (const BarrierUse& a : b.copies) {
        if (a.conditional) return;  // running it will tell
        if (!a.times) {
          broken("barrier.C3", a.span,
                 fmt::format("how many copies a use of `{}` has is not constant", b.symbol.name));
          return;
        }
        copies[a.agent][{a.loop, a.index}] += *a.times;
      }
      for (const auto& [agent, uses] : copies) {
        int64_t most = 0;
        for (const auto& [where, n] : uses) most = std::max(most, n);
        arrive += most;
      }
      how = "are brought by copies";
      if (!b.copies.empty()) first = b.copies[0].span;
    }
    if (!arrive || b.arrivals.value_or(0) < 1 || arrive == *b.arrivals) return;
    broken("barrier.C3", b.symbol.span,
           fmt::format("`{}` needs {} arrivals, {} {} at a use", b.symbol.name, *b.arrivals, arrive,
                       how))
        .notes.push_back({"the first is here", first});
  }

  void queue(const QueueFacts& q) {
    initialised(q.symbol);
    if (!program_.kernel() || facts_.incomplete) return;
    if (facts_.warpgroups_are_known() && q.takers && *q.takers != q.counted)
      broken("queue.C2", q.symbol.span,
             fmt::format("`{}` has {} takers, {} take", q.symbol.name, *q.takers, q.counted));
    if (q.offers.size() != 1) {
      broken("queue.C3", q.offers.empty() ? q.symbol.span : q.offers[1]->span,
             fmt::format("{} threads offer the blocks of `{}`", q.offers.size(), q.symbol.name));
      return;
    }
    for (const Stmt* take : q.takes)
      if (!equal(take->count(), q.offers[0]->count()))
        broken(take->op == Op::dynamic_tiles ? "dynamic_tiles.C2" : "dynamic_tiles_warp.C2",
               take->span,
               fmt::format("`{}` blocks are taken, `{}` are offered", print(take->count()),
                           print(q.offers[0]->count())))
            .notes.push_back({"they are offered here", q.offers[0]->span});
  }

  const Program& program_;
  Facts& facts_;
  Diagnostics& diagnostics_;
};

}  // namespace

void judge_module(const Program& program, Facts& facts, Diagnostics& diagnostics) {
  Judge(program, facts, diagnostics).all();
}

}  // namespace kw::tl
