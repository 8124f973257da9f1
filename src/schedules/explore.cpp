#include "schedules/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <set>
#include <unordered_set>

#include "exec/faults.h"

namespace kw::exec::schedule {

namespace {

using State = std::vector<int16_t>;

struct Key {
  uint64_t a, b;
  bool operator==(const Key& o) const { return a == o.a && b == o.b; }
};
struct KeyHash {
  size_t operator()(const Key& k) const { return k.a; }
};

Key key_of(const State& s) {
  Key k{0x243F6A8885A308D3ull, 0x13198A2E03707344ull};
  for (int16_t x : s) {
    k.a = (k.a ^ uint16_t(x)) * 0x9E3779B97F4A7C15ull;
    k.a ^= k.a >> 32;
    k.b = (k.b + uint16_t(x)) * 0xC2B2AE3D27D4EB4Full;
    k.b ^= k.b >> 29;
  }
  return k;
}

// An access that lasts: cells of one slot.
struct Lasting {
  int first;  // the slot's first cell
  Cells cells;
  bool writes;
  const Event* event;
};

bool others_notice(Kind k) {
  switch (k) {
    case Kind::wait:
    case Kind::wait_free:
    case Kind::arrive:
    case Kind::expect:
    case Kind::sync:
    case Kind::give:
    case Kind::wgmma_wait:
    case Kind::cp_async_wait:
    case Kind::tma_store_wait_read:
    case Kind::tma_store_wait:
    case Kind::ready:
    case Kind::fence_async:
      return true;
    default:
      return false;
  }
}

class Explorer {
 public:
  Explorer(const Tables& t, const std::vector<Stream>& streams, int64_t most)
      : t_(t), streams_(streams), most_(most), actors_(int(streams.size())) {
    lay_out();
    prepare();
  }

  Explored run() {
    State start(size_, 0);
    for (int c = 0; c < t_.total_cells; ++c) start[tag_ + c] = -1;
    for (int a = 0; a < actors_ && !found(); ++a) accesses(start, a);
    push(std::move(start));
    while (!stack_.empty() && !found()) {
      const State s = std::move(stack_.back());
      stack_.pop_back();
      if (++out_.states >= most_) {
        out_.cut = true;
        break;
      }
      bool moved = false, done = true;
      for (int a = 0; a < actors_ && !found(); ++a) {
        if (size_t(s[a]) >= streams_[a].size()) continue;
        done = false;
        State next = s;
        if (!step(next, a)) continue;
        moved = true;
        push(std::move(next));
      }
      for (size_t f = 0; f < fills_.size() && !found(); ++f) {
        if (!(s[flying_ + f / 15] >> (f % 15) & 1)) continue;
        State next = s;
        land(next, int(f));
        moved = true;
        push(std::move(next));
      }
      if (!moved && !done && !found()) deadlock(s);
    }
    return std::move(out_);
  }

 private:
  struct Fill {
    int actor;
    const Event *event, *from;  // `from`: what it reads in shared memory; null: in global memory
  };

  bool found() const { return out_.finding.has_value(); }

  void lay_out() {
    int at = actors_;
    auto take = [&](int n) {
      const int first = at;
      at += n;
      return first;
    };
    waiting_ = take(actors_);
    completed_ = take(t_.slots);
    arrived_ = take(t_.slots);
    missing_ = take(t_.slots);
    ready_ = take(t_.slots);
    generation_ = take(int(t_.named.size()));
    come_ = take(int(t_.named.size()));
    tag_ = take(t_.total_cells);
    unfenced_ = take(t_.total_cells);
    for (int a = 0; a < actors_; ++a) {
      const Event* before = nullptr;
      for (const Event& e : streams_[a]) {
        if (e.kind == Kind::fill) {
          fill_of_[&e] = int(fills_.size());
          fills_.push_back({a, &e, before && before->kind == Kind::sent ? before : nullptr});
        }
        before = &e;
      }
    }
    flying_ = take(int(fills_.size() + 14) / 15);
    size_ = at;
    landed_in_.resize(actors_);
    for (int a = 0; a < actors_; ++a) landed_in_[a].assign(streams_[a].size(), -1);
  }

  int slot_of(int ring, int64_t use) const {
    return t_.rings[ring].first + int(use % t_.rings[ring].length);
  }
  int cell_of(const Event& e) const {
    const Strand& s = t_.strands[e.object];
    return s.first + int(e.use % s.length) * s.cells;
  }

  // What each agent is at, for each place where it can stand.
  void prepare() {
    lasting_.resize(actors_);
    for (int a = 0; a < actors_; ++a) {
      std::vector<Lasting> now, gathering, copying;
      std::deque<std::vector<Lasting>> products, commits;
      std::vector<Lasting> stores;
      auto snapshot = [&] {
        std::vector<Lasting> all = now;
        for (const auto* list : {&gathering, &copying, &stores})
          all.insert(all.end(), list->begin(), list->end());
        for (const auto* lists : {&products, &commits})
          for (const auto& list : *lists) all.insert(all.end(), list.begin(), list.end());
        lasting_[a].push_back(std::move(all));
      };
      snapshot();
      for (const Event& e : streams_[a]) {
        if (others_notice(e.kind)) now.clear();
        const bool place = e.region >= 0;
        const Lasting here{place ? cell_of(e) : 0, place ? t_.cells[e.region] : 0,
                           e.kind == Kind::write || e.kind == Kind::copy, &e};
        switch (e.kind) {
          case Kind::read:
          case Kind::write:
            now.push_back(here);
            break;
          case Kind::operand:
            gathering.push_back(here);
            break;
          case Kind::issue:
            products.push_back(std::move(gathering));
            gathering.clear();
            break;
          case Kind::copy:
            copying.push_back(here);
            break;
          case Kind::commit:
            commits.push_back(std::move(copying));
            copying.clear();
            break;
          case Kind::wgmma_wait:
            while (products.size() > size_t(e.count)) products.pop_front();
            break;
          case Kind::cp_async_wait:
            while (commits.size() > size_t(e.count)) commits.pop_front();
            break;
          case Kind::store:
            stores.push_back(here);
            break;
          case Kind::tma_store_wait:
          case Kind::tma_store_wait_read:
            stores.clear();
            break;
          default:
            break;
        }
        snapshot();
      }
    }
  }

  void push(State s) {
    if (!found() && seen_.insert(key_of(s)).second) stack_.push_back(std::move(s));
  }

  void blame(const char* code, int actor, const Event& e, const std::string& message,
             const Event* other = nullptr) {
    if (found()) return;
    Diagnostic d;
    d.code = code;
    d.span = e.stmt->span;
    d.message = fmt::format("{}: {} ({})", cite(*e.stmt), message, t_.actors[actor].name);
    if (other) d.notes.push_back({"the other: " + cite(*other->stmt), other->stmt->span});
    out_.finding = std::move(d);
  }

  // One event that others can notice, and what follows it. False: it cannot happen yet.
  bool step(State& s, int a) {
    const Stream& stream = streams_[a];
    const Event& e = stream[s[a]];
    switch (e.kind) {
      case Kind::wait:
      case Kind::wait_free:
        if (!pass(s, a, e)) return false;
        break;
      case Kind::arrive:
        for (size_t n = s[a]; n < stream.size() && stream[n].kind == Kind::arrive &&
                              stream[n].stmt == e.stmt && (n == size_t(s[a]) || stream[n].bar > 0);
             ++n) {
          arrive(s, a, stream[n]);
          if (n > size_t(s[a])) ++skip_;
        }
        break;
      case Kind::expect:
        arrive(s, a, e);
        break;
      case Kind::sync:
      case Kind::give: {
        const int r = meet(s, a, e);
        if (r == 0) return false;
        if (r == 1) return true;
        break;
      }
      case Kind::fence_async:
        for (int c = 0; c < t_.total_cells; ++c)
          if (s[unfenced_ + c] == a + 1) s[unfenced_ + c] = 0;
        break;
      case Kind::ready:
        for (int k = 0; k < t_.rings[e.object].length; ++k) {
          int16_t& ready = s[ready_ + t_.rings[e.object].first + k];
          if (ready)
            blame("schedule.uninitialised", a, e,
                  fmt::format("initialises {} once more", t_.rings[e.object].name));
          ready = 1;
        }
        break;
      default:
        break;
    }
    s[a] = int16_t(s[a] + 1 + skip_);
    skip_ = 0;
    accesses(s, a);
    ends(s, a);
    return true;
  }

  bool is_ready(const State& s, int a, const Event& e, int ring, int64_t use) {
    if (s[ready_ + slot_of(ring, use)]) return true;
    blame(t_.rings[ring].cta == t_.actors[a].cta ? "schedule.uninitialised" : "schedule.cluster", a,
          e, fmt::format("{} may not be initialised", t_.rings[ring].name));
    return false;
  }

  bool reaches(const State& s, int a, const Event& e, int cta) {
    if (cta == t_.actors[a].cta) return true;
    for (int other = 0; other < actors_; ++other)
      if (t_.actors[other].cta == cta && size_t(s[other]) < streams_[other].size()) return true;
    blame("schedule.cluster", a, e, "reaches into a CTA that may have ended");
    return false;
  }

  bool pass(State& s, int a, const Event& e) {
    if (!is_ready(s, a, e, e.object, e.use)) return true;
    const Ring& ring = t_.rings[e.object];
    const int64_t generation = e.use / ring.length - (e.kind == Kind::wait_free);
    const int64_t completed = s[completed_ + slot_of(e.object, e.use)];
    if (((completed ^ generation) & 1) == 0) return false;  // the bit of phase
    if (completed != generation + 1)
      blame("schedule.phase", a, e,
            fmt::format("passes for generation {} when {} are complete", generation, completed));
    return true;
  }

  void arrive(State& s, int a, const Event& e) {
    if (!is_ready(s, a, e, e.object, e.use)) return;
    const Ring& ring = t_.rings[e.object];
    if (!reaches(s, a, e, ring.cta)) return;
    const int slot = slot_of(e.object, e.use);
    if (s[completed_ + slot] != e.use / ring.length)
      return blame("schedule.arrival", a, e,
                   fmt::format("arrives for generation {} of {} in generation {}",
                               e.use / ring.length, ring.name, s[completed_ + slot]));
    s[arrived_ + slot] = int16_t(s[arrived_ + slot] + (e.kind == Kind::expect ? 1 : e.count));
    if (e.kind == Kind::expect) s[missing_ + slot] = int16_t(s[missing_ + slot] + e.count);
    if (s[arrived_ + slot] > ring.arrivals)
      return blame("schedule.arrival", a, e, "one arrival too many");
    complete(s, slot, ring);
  }

  void complete(State& s, int slot, const Ring& ring) {
    if (s[arrived_ + slot] != ring.arrivals || s[missing_ + slot] != 0) return;
    s[arrived_ + slot] = 0;
    const int64_t completed = ++s[completed_ + slot];
    for (int a = 0; a < actors_ && !found(); ++a) {
      if (size_t(s[a]) >= streams_[a].size()) continue;
      const Event& e = streams_[a][s[a]];
      if ((e.kind != Kind::wait && e.kind != Kind::wait_free) || slot_of(e.object, e.use) != slot)
        continue;
      const int64_t generation = e.use / ring.length - (e.kind == Kind::wait_free);
      if (completed > generation + 1)
        blame("schedule.phase", a, e,
              fmt::format("still waits for generation {} when {} are complete", generation,
                          completed));
    }
  }

  // 0: waits; 1: has arrived and waits now; 2: passes.
  int meet(State& s, int a, const Event& e) {
    int16_t& generation = s[generation_ + e.object];
    if (s[waiting_ + a]) {
      if (generation < s[waiting_ + a]) return 0;
      s[waiting_ + a] = 0;
      return 2;
    }
    int16_t& in = landed_in_[a][s[a]];
    if (in < 0) in = generation;
    if (in != generation)
      blame("schedule.arrival", a, e,
            fmt::format("counts for turn {} in one schedule and for turn {} in another", in,
                        generation));
    const int16_t mine = generation;
    int16_t& come = s[come_ + e.object];
    come = int16_t(come + (e.one_thread ? 1 : t_.actors[a].weight));
    if (come > t_.named[e.object].warps) blame("schedule.arrival", a, e, "one too many have come");
    if (come == t_.named[e.object].warps) {
      come = 0;
      ++generation;
    }
    if (e.kind == Kind::give || generation > mine) return 2;
    s[waiting_ + a] = int16_t(mine + 1);
    return 1;
  }

  // The events after one that others notice, up to the next.
  void accesses(State& s, int a) {
    for (; size_t(s[a]) < streams_[a].size() && !found(); ++s[a]) {
      const Event& e = streams_[a][s[a]];
      if (others_notice(e.kind)) return;
      switch (e.kind) {
        case Kind::fill: {
          const Ring& ring = t_.rings[e.bar];
          if (!is_ready(s, a, e, e.bar, e.bar_use) || !reaches(s, a, e, ring.cta)) return;
          if (s[completed_ + slot_of(e.bar, e.bar_use)] != e.bar_use / ring.length)
            return blame("schedule.arrival", a, e, "its bytes count for another generation");
          conflicts(s, a, e, true);
          const int f = fill_of_.at(&e);
          s[flying_ + f / 15] = int16_t(s[flying_ + f / 15] | 1 << (f % 15));
          each(e, [&](int c) {
            if (s[unfenced_ + c]) blame("schedule.fence", a, e, "fills what was not published");
          });
          break;
        }
        case Kind::read:
        case Kind::sent:
        case Kind::operand:
        case Kind::store:
          conflicts(s, a, e, false);
          look(s, a, e);
          break;
        case Kind::write:
        case Kind::copy:
          conflicts(s, a, e, true);
          each(e, [&](int c) {
            s[tag_ + c] = int16_t(e.use);
            s[unfenced_ + c] = int16_t(a + 1);
          });
          break;
        default:
          break;
      }
    }
  }

  template <class F>
  void each(const Event& e, const F& f) {
    const int first = cell_of(e);
    for (Cells cells = t_.cells[e.region]; cells && !found(); cells &= cells - 1)
      f(first + std::countr_zero(cells));
  }

  void look(const State& s, int a, const Event& e) {
    each(e, [&](int c) {
      if (s[tag_ + c] < 0)
        blame("schedule.uninitialised", a, e, "reads what nothing has written");
      else if (t_.strands[e.object].tagged && s[tag_ + c] != int16_t(e.use))
        blame("schedule.stale", a, e, fmt::format("reads use {}", s[tag_ + c]));
      else if (e.kind != Kind::read && s[unfenced_ + c])
        blame("schedule.fence", a, e, "reads what was not published");
    });
  }

  // Others that are at the same cells now.
  void conflicts(const State& s, int a, const Event& e, bool writes) {
    const int first = cell_of(e);
    const Cells cells = t_.cells[e.region];
    for (int other = 0; other < actors_ && !found(); ++other) {
      for (const Lasting& l : lasting_[other][s[other]]) {
        // Whoever waits at a meeting has come there, and is past what it did before.
        const bool past = (other == a || s[waiting_ + other]) && !lasts_beyond(*l.event);
        if (l.first != first || !(l.cells & cells) || !(writes || l.writes) || past ||
            l.event == &e)
          continue;
        blame(writes && !l.writes ? "schedule.overwrite" : "schedule.race", a, e,
              "at the same time as another access", l.event);
        return;
      }
    }
    for (size_t f = 0; f < fills_.size() && !found(); ++f) {
      const Event& l = *fills_[f].event;
      const Event* from = writes ? fills_[f].from : nullptr;
      if (!(s[flying_ + f / 15] >> (f % 15) & 1)) continue;
      if (from && cell_of(*from) == first && (t_.cells[from->region] & cells))
        blame("schedule.overwrite", a, e, "while it is on its way to the other CTA", from);
      if (cell_of(l) == first && (t_.cells[l.region] & cells))
        blame(writes ? "schedule.race" : "schedule.not_arrived", a, e,
              "while a copy is on its way there", &l);
    }
  }

  static bool lasts_beyond(const Event& e) {
    return e.kind == Kind::operand || e.kind == Kind::copy || e.kind == Kind::store;
  }

  void land(State& s, int f) {
    const Event& e = *fills_[f].event;
    s[flying_ + f / 15] = int16_t(s[flying_ + f / 15] & ~(1 << (f % 15)));
    each(e, [&](int c) {
      s[tag_ + c] = int16_t(e.use);
      s[unfenced_ + c] = 0;
    });
    const Ring& ring = t_.rings[e.bar];
    const int slot = slot_of(e.bar, e.bar_use);
    if (s[completed_ + slot] != e.bar_use / ring.length)
      return blame("schedule.arrival", fills_[f].actor, e,
                   "its bytes count for another generation");
    --s[missing_ + slot];
    complete(s, slot, ring);
  }

  // An agent's end, and perhaps its CTA's.
  void ends(const State& s, int a) {
    if (size_t(s[a]) < streams_[a].size() || streams_[a].empty() || found()) return;
    for (const Lasting& l : lasting_[a].back())
      if (lasts_beyond(*l.event)) blame("schedule.exit", a, *l.event, "is under way at the end");
    if (unfinished(a)) blame("schedule.exit", a, *unfinished(a), "may not be in global memory");
    const int cta = t_.actors[a].cta;
    for (int other = 0; other < actors_; ++other)
      if (t_.actors[other].cta == cta && size_t(s[other]) < streams_[other].size()) return;
    for (size_t f = 0; f < fills_.size(); ++f)
      if ((s[flying_ + f / 15] >> (f % 15) & 1) && t_.strands[fills_[f].event->object].cta == cta)
        blame("schedule.exit", fills_[f].actor, *fills_[f].event,
              "is still in flight when the CTA exits; no wait covers it");
  }

  const Event* unfinished(int a) const {
    const Event* stored = nullptr;
    for (const Event& e : streams_[a]) {
      if (e.kind == Kind::store) stored = &e;
      if (e.kind == Kind::tma_store_wait) stored = nullptr;
    }
    return stored;
  }

  void deadlock(const State& s) {
    for (const bool meeting : {false, true})
      for (int a = 0; a < actors_ && !found(); ++a)
        if (size_t(s[a]) < streams_[a].size() &&
            (streams_[a][s[a]].stmt->op == tl::Op::sync_cluster) == meeting)
          blame("schedule.deadlock", a, streams_[a][s[a]], "can never complete");
  }

  const Tables& t_;
  const std::vector<Stream>& streams_;
  const int64_t most_;
  const int actors_;
  int waiting_ = 0, completed_ = 0, arrived_ = 0, missing_ = 0, ready_ = 0, generation_ = 0,
      come_ = 0, tag_ = 0, unfenced_ = 0, flying_ = 0, size_ = 0, skip_ = 0;
  std::vector<Fill> fills_;
  std::map<const Event*, int> fill_of_;
  std::vector<std::vector<int16_t>> landed_in_;
  std::vector<std::vector<std::vector<Lasting>>> lasting_;
  std::vector<State> stack_;
  std::unordered_set<Key, KeyHash> seen_;
  Explored out_;
};

}  // namespace

Explored explore(const Tables& tables, const std::vector<Stream>& streams, int64_t most) {
  return Explorer(tables, streams, most).run();
}

// Each cluster: first its own number; then draws, until a number is past the end; then leaves. The
// last to leave sets the counter to zero. Two words: numbers drawn, clusters gone.
QueueExplored explore_queue(int clusters, int blocks) {
  struct State {
    int drawn = 0, gone = 0;
    uint32_t done = 0;    // blocks worked on
    std::vector<int> at;  // by cluster: the number in hand; -1 gone
    bool operator<(const State& o) const {
      return std::tie(drawn, gone, done, at) < std::tie(o.drawn, o.gone, o.done, o.at);
    }
  };
  QueueExplored out;
  State start;
  for (int c = 0; c < clusters; ++c) start.at.push_back(c);
  std::set<State> seen{start};
  std::vector<State> stack{start};
  while (!stack.empty()) {
    const State s = stack.back();
    stack.pop_back();
    ++out.states;
    bool moved = false;
    for (int c = 0; c < clusters; ++c) {
      if (s.at[c] < 0) continue;
      moved = true;
      State next = s;
      if (s.at[c] < blocks) {  // works on it, and draws
        if (s.done >> s.at[c] & 1) out.right = false;
        next.done |= 1u << s.at[c];
        next.at[c] = clusters + next.drawn++;
      } else {  // leaves; the last one leaves zeros
        next.at[c] = -1;
        next.gone = s.gone == clusters - 1 ? 0 : s.gone + 1;
        if (s.gone == clusters - 1) next.drawn = 0;
      }
      if (seen.insert(next).second) stack.push_back(next);
    }
    if (!moved) out.right &= s.drawn == 0 && s.gone == 0 && s.done == (1u << blocks) - 1;
  }
  return out;
}

}  // namespace kw::exec::schedule
