#include "schedules/clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "exec/faults.h"

namespace kw::exec::schedule {

using tl::Stmt;

namespace {

void join(Clock& into, const Clock& from) {
  for (size_t n = 0; n < into.size(); ++n) into[n] = std::max(into[n], from[n]);
}

template <class F>
void each_cell(int first, Cells cells, const F& f) {
  for (; cells; cells &= cells - 1) f(first + std::countr_zero(cells));
}

}  // namespace

Clocks::Clocks(const Tables& tables)
    : t_(&tables),
      clocks_(tables.actors.size(), Clock(tables.actors.size() + tables.slots)),
      actors_(tables.actors.size()),
      barriers_(tables.slots),
      named_(tables.named.size()),
      cells_(tables.total_cells),
      last_use_(tables.actors.size(), std::vector<int64_t>(tables.rings.size(), -1)),
      last_touch_(tables.actors.size(), std::vector<int64_t>(tables.strands.size(), -1)) {
  stays.assign(tables.actors.size(), 0);
  const Clock zero(tables.actors.size() + tables.slots);
  for (BarrierState& b : barriers_) b.coming = b.done = zero;
  for (NamedState& n : named_) n.coming = n.done = zero;
  for (size_t a = 0; a < clocks_.size(); ++a) clocks_[a][a] = 1;
}

// ---- running
bool Clocks::advance(int actor, const Stream& stream) {
  bool moved = false;
  while (!finding_ && actors_[actor].at < stream.size()) {
    const Event& e = stream[actors_[actor].at];
    ++clock(actor)[actor];
    if (!step(actor, e)) {
      --clock(actor)[actor];
      break;
    }
    ++actors_[actor].at;
    moved = true;
    if (e.kind == Kind::lap && actor == lap_of) {
      lapped = true;
      break;
    }
  }
  return moved;
}

void Clocks::run(const std::vector<Stream>& streams) {
  for (bool moved = true; moved && !finding_ && !lapped;) {
    moved = false;
    for (size_t a = 0; a < streams.size() && !finding_ && !lapped; ++a)
      moved |= advance(int(a), streams[a]);
  }
  if (finding_ || lapped) return;
  for (size_t a = 0; a < streams.size(); ++a)
    if (actors_[a].at < streams[a].size() && (ending || !stays[a])) return deadlock(streams);
}

std::vector<size_t> Clocks::positions() const {
  std::vector<size_t> all;
  for (const ActorState& a : actors_) all.push_back(a.at);
  return all;
}

void Clocks::rewind() {
  for (size_t a = 0; a < actors_.size(); ++a)
    if (!stays[a]) actors_[a].at = 0;
}

bool Clocks::step(int actor, const Event& e) {
  ActorState& me = actors_[actor];
  switch (e.kind) {
    case Kind::mark:
    case Kind::lap:
    case Kind::compute:
      break;
    case Kind::ready:
      for (int slot = 0; slot < t_->rings[e.object].length; ++slot) {
        BarrierState& b = barriers_[t_->rings[e.object].first + slot];
        if (b.ready >= 0)
          blame(
              "schedule.uninitialised", actor, e,
              fmt::format("{} initialises {} once more", cite(*e.stmt), t_->rings[e.object].name));
        b.ready = actor;
        b.ready_at = clock(actor)[actor];
      }
      break;
    case Kind::wait:
    case Kind::wait_free:
      return wait(actor, e);
    case Kind::arrive:
      arrive(actor, e, 0);
      break;
    case Kind::expect:
      arrive(actor, e, e.count);
      break;
    case Kind::fill:
      fill(actor, e);
      break;
    case Kind::sent:
      sent(actor, e);
      break;
    case Kind::read:
      read(actor, e, false, nullptr);
      break;
    case Kind::write:
      write(actor, e, {actor, clock(actor)[actor], actor, 0, false, 0, e.use, e.stmt});
      break;
    case Kind::copy:
      write(actor, e, {actor, clock(actor)[actor], actor, 1, false, 0, e.use, e.stmt});
      break;
    case Kind::commit:
      me.commits.push_back(std::move(me.copying));
      me.copying = {};
      break;
    case Kind::cp_async_wait:
      while (me.commits.size() > size_t(e.count)) {
        close_writes(actor, me.commits.front());
        me.commits.erase(me.commits.begin());
      }
      break;
    case Kind::operand:
      read(actor, e, true, &me.gathering);
      break;
    case Kind::issue:
      me.gathering.stmt = e.stmt;
      me.products.push_back(std::move(me.gathering));
      me.gathering = {};
      break;
    case Kind::wgmma_wait:
      while (me.products.size() > size_t(e.count)) {
        close_reads(actor, me.products.front());
        me.products.erase(me.products.begin());
      }
      break;
    case Kind::store: {
      Begun b;
      b.stmt = me.stored = e.stmt;
      read(actor, e, true, &b);
      me.stores.push_back(std::move(b));
      me.unfinished = true;
      break;
    }
    case Kind::tma_store_wait:
      me.unfinished = false;
      [[fallthrough]];
    case Kind::tma_store_wait_read:
      for (const Begun& b : me.stores) close_reads(actor, b);
      me.stores.clear();
      break;
    case Kind::fence_async:
      fence_async(actor);
      break;
    case Kind::sync:
    case Kind::give:
      return sync(actor, e);
  }
  return true;
}

// ---- barriers
bool Clocks::known_ready(int actor, const Event& e, int ring) {
  const Ring& r = t_->rings[ring];
  const BarrierState& b = barriers_[r.first + e.use % r.length];
  if (b.ready >= 0 && clock(actor)[b.ready] >= b.ready_at) return true;
  const bool other = r.cta != t_->actors[actor].cta;
  if (auto* d = blame(
          other && b.ready >= 0 ? "schedule.cluster" : "schedule.uninitialised", actor, e,
          fmt::format("{} uses {}, which may not be initialised yet", cite(*e.stmt), place(e))))
    d->hint = other ? "sync_cluster after init" : "name it in init";
  return false;
}

// Whether the other CTA has begun is known with its barriers; that it has not ended, at the end.
bool Clocks::reach(int actor, const Event& e, int cta) {
  if (cta == t_->actors[actor].cta) return false;
  actors_[actor].reached = e.stmt;
  actors_[actor].reached_at = clock(actor)[actor];
  return true;
}

bool Clocks::wait(int actor, const Event& e) {
  const Ring& ring = t_->rings[e.object];
  const int slot = ring.first + int(e.use % ring.length);
  BarrierState& b = barriers_[slot];
  if (!known_ready(actor, e, e.object)) return true;
  const int64_t generation = e.use / ring.length - (e.kind == Kind::wait_free ? 1 : 0);
  const int64_t seen = clock(actor)[int(t_->actors.size()) + slot];
  if (seen < generation) {
    blame("schedule.phase", actor, e,
          fmt::format("{} waits for generation {} of {} and knows of {} complete ones only: the "
                      "one bit of phase may tell it too early (two phases behind)",
                      cite(*e.stmt), generation, place(e), seen));
    return true;
  }
  if (b.completed > generation + 1) {
    if (auto* d = blame("schedule.phase", actor, e,
                        fmt::format("{} waits for generation {} of {}, and {} are complete before "
                                    "it looks: it may never return",
                                    cite(*e.stmt), generation, place(e), b.completed)))
      d->notes.push_back({"the last to arrive there: " + cite(*b.last), b.last->span});
    return true;
  }
  if (b.completed <= generation) return false;
  if (generation >= 0) join(clock(actor), b.done);
  b.waits.push_back({actor, clock(actor)[actor], e.stmt});
  last_use_[actor][e.object] = e.use;
  return true;
}

int64_t Clocks::known(int actor, int slot) const {
  const Clock& c = clocks_[actor];
  const BarrierState& b = barriers_[slot];
  const bool all = std::all_of(b.came_before.begin(), b.came_before.end(),
                               [&](const auto& came) { return c[came.first] >= came.second; });
  return all ? b.completed : int64_t(c[t_->actors.size() + slot]);
}

void Clocks::arrive(int actor, const Event& e, int parts) {
  const Ring& ring = t_->rings[e.object];
  const int slot = ring.first + int(e.use % ring.length);
  BarrierState& b = barriers_[slot];
  if (!known_ready(actor, e, e.object)) return;
  reach(actor, e, ring.cta);
  const int64_t generation = e.use / ring.length;
  const int64_t seen = known(actor, slot);
  if (seen < generation || b.completed != generation) {
    auto* d = blame(
        "schedule.arrival", actor, e,
        b.completed > generation
            ? fmt::format("{} arrives for generation {} of {}, which is complete without it",
                          cite(*e.stmt), generation, place(e))
            : fmt::format("{} arrives for generation {} of {} and knows of {} complete ones only: "
                          "it may count for an earlier one",
                          cite(*e.stmt), generation, place(e), seen));
    if (d && b.last) d->notes.push_back({"also arrives there: " + cite(*b.last), b.last->span});
    return;
  }
  if (b.arrived + (parts ? 1 : e.count) > ring.arrivals) {
    blame("schedule.arrival", actor, e,
          fmt::format("{} is arrival {} of {} at {}", cite(*e.stmt), b.arrived + 1, ring.arrivals,
                      place(e)));
    return;
  }
  ActorState& me = actors_[actor];
  if (e.bar <= 0) me.together = clock(actor)[actor];
  b.came.push_back({actor, me.together});
  b.arrived += parts ? 1 : e.count;
  b.missing += parts;
  b.last = e.stmt;
  join(b.coming, clock(actor));
  last_use_[actor][e.object] = e.use;
  complete(slot, ring);
  ++clock(actor)[actor];
}

void Clocks::complete(int slot, const Ring& ring) {
  BarrierState& b = barriers_[slot];
  if (b.arrived != ring.arrivals || b.missing != 0) return;
  const int self = int(t_->actors.size()) + slot;
  b.coming[self] = Time(b.completed + 1);
  for (const auto& [who, when, waiter] : b.waits)
    if (b.coming[who] < when && !finding_) {
      Diagnostic d;
      d.code = "schedule.phase";
      d.span = b.last->span;
      d.message = fmt::format(
          "{} may complete generation {} of {} while {} still waits for the one before: with one "
          "bit of phase it may never return",
          cite(*b.last), b.completed, ring.name, name(*t_, who));
      d.notes.push_back({"the wait: " + cite(*waiter), waiter->span});
      finding_ = d;
    }
  b.waits.clear();
  b.came_before = std::move(b.came);
  b.came.clear();
  b.done = std::move(b.coming);
  b.coming.assign(b.done.size(), 0);
  b.arrived = 0;
  ++b.completed;
}

// The copy engine writes: from here, until the phase that counts its bytes is complete.
void Clocks::fill(int actor, const Event& e) {
  const Ring& ring = t_->rings[e.bar];
  const int slot = ring.first + int(e.bar_use % ring.length);
  BarrierState& b = barriers_[slot];
  Event bar = e;
  bar.use = e.bar_use;
  bar.object = e.bar;
  bar.kind = Kind::expect;
  bar.region = -1;
  if (!known_ready(actor, bar, e.bar)) return;
  reach(actor, e, ring.cta);
  const int64_t generation = e.bar_use / ring.length;
  const int self = int(t_->actors.size()) + slot;
  if (int64_t(clock(actor)[self]) < generation || b.completed != generation) {
    blame("schedule.arrival", actor, bar,
          fmt::format("the bytes of {} are for generation {} of {}, of which {} knows {} complete "
                      "ones: they may count for another",
                      cite(*e.stmt), generation, place(bar), name(*t_, actor), clock(actor)[self]));
    return;
  }
  write(actor, e, {self, Time(generation + 1), actor, 0, true, 0, e.use, e.stmt});
  // The bytes come after what their sender had seen complete. That orders phases; what the sender
  // itself wrote is not made visible by it.
  const Clock& sender = clock(actor);
  for (size_t n = t_->actors.size(); n < sender.size(); ++n)
    b.coming[n] = std::max(b.coming[n], sender[n]);
  --b.missing;
  complete(slot, ring);
}

// And it reads: whoever knows that phase to be complete knows that it has read.
void Clocks::sent(int actor, const Event& e) {
  const Ring& ring = t_->rings[e.bar];
  const int self = int(t_->actors.size()) + ring.first + int(e.bar_use % ring.length);
  look(actor, e, true);
  const int first = first_cell(e);
  each_cell(first, t_->cells[e.region], [&](int at) {
    std::vector<Touch>& reads = cells_[at].reads;
    std::erase_if(reads, [&](const Touch& r) { return r.who == self; });
    reads.push_back({self, Time(e.bar_use / ring.length + 1), actor, 0, true, 0, e.use, e.stmt});
  });
  last_touch_[actor][e.object] = e.use;
}

bool Clocks::sync(int actor, const Event& e) {
  ActorState& me = actors_[actor];
  NamedState& n = named_[e.object];
  if (me.waiting < 0) {
    // C1: whoever arrives knows that the generations before are complete, because it has been
    // there or has been told. `done` is what the last generation knew.
    for (size_t k = 0; n.generation > 0 && k < n.done.size(); ++k)
      if (k < t_->actors.size() && n.done[k] > clock(actor)[k]) {
        auto* d = blame(
            "schedule.arrival", actor, e,
            fmt::format("{} may come to {} before the others have passed it the last time: it "
                        "would count for an earlier turn",
                        cite(*e.stmt), t_->named[e.object].name));
        if (d && n.last) d->notes.push_back({"who came last: " + cite(*n.last), n.last->span});
        return true;
      }
    join(n.coming, clock(actor));
    n.last = e.stmt;
    me.waiting = n.generation;
    n.arrived += e.one_thread ? 1 : t_->actors[actor].weight;
    if (n.arrived >= t_->named[e.object].warps) {
      n.done = std::move(n.coming);
      n.coming.assign(n.done.size(), 0);
      n.arrived = 0;
      ++n.generation;
    }
    ++clock(actor)[actor];
    if (e.kind == Kind::give) {
      me.waiting = -1;
      return true;
    }
  }
  if (n.generation == me.waiting) return false;
  join(clock(actor), n.done);
  me.waiting = -1;
  return true;
}

// ---- memory
int Clocks::first_cell(const Event& e) const {
  const Strand& strand = t_->strands[e.object];
  return strand.first + int(e.use % strand.length) * strand.cells;
}

// Whether what is read is there, of the use that is meant, and visible.
void Clocks::look(int actor, const Event& e, bool async) {
  const Strand& strand = t_->strands[e.object];
  const int first = first_cell(e);
  const Clock& c = clock(actor);
  each_cell(first, t_->cells[e.region], [&](int at) {
    const Touch& w = cells_[at].write;
    if (finding_) return;
    if (w.who < 0) {
      blame(
          "schedule.uninitialised", actor, e,
          fmt::format("{} may read {} before anything is written there", cite(*e.stmt), place(e)));
    } else if (!knows(c, w)) {
      const bool copied = w.async || w.open;
      note(blame(copied ? "schedule.not_arrived" : "schedule.race", actor, e,
                 copied ? fmt::format("{} may read {} before it has come: no wait for it",
                                      cite(*e.stmt), place(e))
                        : fmt::format("{} reads {} and nothing orders it after the write",
                                      cite(*e.stmt), place(e))),
           copied ? "the copy" : "the write", w);
    } else if (strand.tagged && w.use != e.use) {
      note(blame("schedule.stale", actor, e,
                 fmt::format("{} reads {} where use {} lies", cite(*e.stmt), place(e), w.use)),
           "written by", w);
    } else if (async && !w.async && (!w.fenced || c[w.who] < w.fenced)) {
      if (auto* d = blame("schedule.fence", actor, e,
                          fmt::format("{} reads {} through the async proxy without a "
                                      "fence.proxy.async (`fence_async`) by the writer before it",
                                      cite(*e.stmt), place(e)))) {
        note(d, "the write", w);
        d->hint = "`fence_async` after the store, before what hands the tile over";
      }
    }
  });
}

void Clocks::read(int actor, const Event& e, bool async, Begun* begun) {
  look(actor, e, async);
  const int first = first_cell(e);
  const Clock& c = clock(actor);
  each_cell(first, t_->cells[e.region], [&](int at) {
    Cell& cell = cells_[at];
    auto mine = std::find_if(cell.reads.begin(), cell.reads.end(),
                             [&](const Touch& r) { return r.who == actor; });
    if (mine == cell.reads.end())
      mine = cell.reads.insert(cell.reads.end(), Touch{actor, 0, actor});
    mine->at = c[actor];
    mine->stmt = e.stmt;
    mine->use = e.use;
    mine->async |= async;
    mine->open += begun ? 1 : 0;
  });
  if (begun) begun->places.push_back({first, t_->cells[e.region]});
  last_touch_[actor][e.object] = e.use;
}

void Clocks::write(int actor, const Event& e, Touch touch) {
  const int first = first_cell(e);
  const Clock& c = clock(actor);
  each_cell(first, t_->cells[e.region], [&](int at) {
    Cell& cell = cells_[at];
    const Touch& w = cell.write;
    if (finding_) return;
    for (const Touch& r : cell.reads)
      if (!knows(c, r)) {
        note(blame("schedule.overwrite", actor, e,
                   fmt::format("{} writes {} while it may still be read: nothing says that the "
                               "reader is done",
                               cite(*e.stmt), place(e))),
             "the reader", r);
        return;
      }
    if (w.who >= 0 && !knows(c, w)) {
      note(blame("schedule.race", actor, e,
                 fmt::format("{} writes {} and nothing orders it after another write",
                             cite(*e.stmt), place(e))),
           "the other write", w);
      return;
    }
    // Who reads through the asynchronous proxy has needed the fence; unread writes have not had it.
    if (w.who >= 0 && touch.async && !w.async && (!w.fenced || c[w.who] < w.fenced)) {
      note(blame("schedule.fence", actor, e,
                 fmt::format("{} fills {} through the async proxy without a fence.proxy.async "
                             "(`fence_async`) by the writer before it",
                             cite(*e.stmt), place(e))),
           "the write", w);
      return;
    }
    cell.write = touch;
    cell.reads.clear();
    if (!touch.async && !touch.open) actors_[actor].unfenced.insert(at);
  });
  if (touch.open) actors_[actor].copying.places.push_back({first, t_->cells[e.region]});
  last_touch_[actor][e.object] = e.use;
}

void Clocks::close_reads(int actor, const Begun& b) {
  const Time now = clock(actor)[actor];
  for (const auto& [first, cells] : b.places)
    each_cell(first, cells, [&](int at) {
      for (Touch& r : cells_[at].reads)
        if (r.who == actor && r.open > 0) {
          --r.open;
          r.at = now;
        }
    });
}

void Clocks::close_writes(int actor, const Begun& b) {
  const Time now = clock(actor)[actor];
  for (const auto& [first, cells] : b.places)
    each_cell(first, cells, [&](int at) {
      Touch& w = cells_[at].write;
      if (w.actor != actor || !w.open) return;
      w.open = 0;
      w.at = now;
    });
}

void Clocks::fence_async(int actor) {
  const Time now = ++clock(actor)[actor];
  for (int at : actors_[actor].unfenced) {
    Touch& w = cells_[at].write;
    if (w.actor == actor && !w.async && !w.fenced && !w.open) w.fenced = now;
  }
  actors_[actor].unfenced.clear();
}

// ---- the end
void Clocks::finish() {
  if (finding_) return;
  const int actors = int(t_->actors.size());
  Event end{};
  auto in_cta = [&](int cta, int who, Time when) {
    for (int a = 0; a < actors; ++a)
      if (t_->actors[a].cta == cta && clocks_[a][who] >= when) return true;
    return false;
  };
  for (int a = 0; a < actors; ++a) {
    ActorState& me = actors_[a];
    end.stmt = me.stored;
    if (me.unfinished)
      if (auto* d = blame(
              "schedule.exit", a, end,
              fmt::format("{} may not be in global memory when the kernel ends", cite(*me.stored))))
        d->hint = "end with tma_store_wait by the thread that stored";
    for (const auto* begun : {&me.products, &me.commits})
      for (const Begun& b : *begun)
        if (!b.places.empty() && !finding_) {
          end.stmt = b.stmt ? b.stmt : cells_[b.places[0].first].write.stmt;
          blame("schedule.exit", a, end, "work is under way when the kernel ends");
        }
    if (!me.reached || finding_) continue;
    end.stmt = me.reached;
    for (int cta = 0; cta < t_->ctas; ++cta)
      if (cta != t_->actors[a].cta && !in_cta(cta, a, me.reached_at))
        if (auto* d = blame("schedule.cluster", a, end,
                            fmt::format("{} reaches into CTA {}, which may have ended",
                                        cite(*me.reached), cta)))
          d->hint = "end with sync_cluster";
  }
  // Copies on their way into a CTA that nobody there has waited for.
  for (const Strand& s : t_->strands)
    for (int at = s.first; at < s.first + s.cells * s.length && !finding_; ++at) {
      const Touch& w = cells_[at].write;
      end.stmt = w.stmt;
      if (w.who >= 0 && w.async && !in_cta(s.cta, w.who, w.at))
        blame("schedule.exit", w.actor, end,
              fmt::format("{} is still in flight into {} at kernel exit; no wait covers it",
                          cite(*w.stmt), s.name));
    }
}

}  // namespace kw::exec::schedule
