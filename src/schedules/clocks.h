// One schedule with vector clocks, deciding all of them.
//
// What happens before what: an agent's own order; an arrival before whoever waits for its phase; a
// copy's end before whoever waits for the phase that counts its bytes; everybody at a named barrier
// or a cluster's meeting before everybody after it. Two accesses of one cell, one of them a write,
// must be ordered. An asynchronous access begins at its statement and ends at the wait that covers
// it. A generic write and an asynchronous access after it need the writer's `fence_async` between
// them.
//
// One schedule speaks for all when every arrival and every wait belongs to one definite phase in
// all of them. A phase of a barrier is one *generation*, counted from 0:
//   C1  an arrival for generation g comes when its agent knows that g - 1 is complete
//   C2  so does a wait for generation g: with one bit of phase, g - 2 would look like it
//   C3  every wait for g that has passed is known to whoever completes g + 1
// Then pairing is the same in all schedules, what one schedule leaves unordered is unordered in
// all, and a deadlock here is a deadlock everywhere.
//
// The state can be copied, and reduced to a fingerprint of everything that the future depends on
// (closure.cpp). The first finding ends a run.
#pragma once
#include <array>
#include <optional>

#include "schedules/model.h"
#include "support/diagnostic.h"

namespace kw::exec::schedule {

using Time = uint32_t;

// An access: known to a clock c when c[who] >= at. `who` is an actor, or a barrier's slot.
struct Touch {
  int who = -1;  // -1: none
  Time at = 0;
  int actor = -1, open = 0;  // open: begun and not ended, so many times
  bool async = false;
  Time fenced = 0;  // of a generic write: when its writer published it; 0: not yet
  int64_t use = 0;
  const tl::Stmt* stmt = nullptr;
};

struct Cell {
  Touch write;
  std::vector<Touch> reads;  // since the write, the latest of each actor
};

using Clock = std::vector<Time>;

struct BarrierState {
  int64_t completed = 0;
  int arrived = 0, missing = 0;  // parts announced and not yet come
  int ready = -1;                // who initialised it
  Time ready_at = 0;
  Clock coming, done;
  struct Waited {
    int who;
    Time at;
    const tl::Stmt* stmt;
  };
  std::vector<Waited> waits;  // for the latest generation
  // Who has arrived in this generation and the last, and when: an arrival in all CTAs of a cluster
  // is one moment, so knowing it in one CTA is knowing it in all.
  std::vector<std::pair<int, Time>> came, came_before;
  const tl::Stmt* last = nullptr;
};
struct NamedState {
  int64_t generation = 0;
  int arrived = 0;
  Clock coming, done;
  const tl::Stmt* last = nullptr;
};
// What an agent has begun: cells, and how the access is closed.
struct Begun {
  std::vector<std::pair<int, Cells>> places;  // first cell of the slot, cells
  const tl::Stmt* stmt = nullptr;
};
struct ActorState {
  size_t at = 0;             // in its stream
  int64_t waiting = -1;      // generation of the named barrier it has arrived at
  Begun gathering, copying;  // before issue; before commit
  std::vector<Begun> products, stores, commits;
  bool unfinished = false;  // stores not yet in global memory
  const tl::Stmt* stored = nullptr;
  std::set<int> unfenced;  // cells with generic writes, each once, or no loop would repeat
  Time together = 0;       // when its arrival in all CTAs began
  const tl::Stmt* reached = nullptr;
  Time reached_at = 0;
};

class Clocks {
 public:
  explicit Clocks(const Tables& tables);

  // Runs actor's events from `stream` until it waits, its stream ends, or `stop` marks have been
  // passed. True if it did anything.
  bool advance(int actor, const Stream& stream);
  // Everybody in turn until nobody moves. Finds deadlock when someone is not at the end.
  void run(const std::vector<Stream>& streams);
  // After the last event: nothing may be under way.
  void finish();

  const std::optional<Diagnostic>& finding() const { return finding_; }
  // Of all that the future depends on; inside a block with where everybody stands in `streams`.
  std::array<uint64_t, 2> fingerprint(const std::vector<Stream>* streams) const;
  // A new stream for everybody: positions restart.
  void rewind();
  std::vector<size_t> positions() const;  // of everybody, in its stream
  // Who goes on from where it is at a rewind: an agent that has no blocks, and need not end with
  // them unless this is the end.
  std::vector<char> stays;
  bool ending = true;
  // Stop at the next `lap` of this actor; -1: never.
  int lap_of = -1;
  bool lapped = false;

 private:
  friend class Trace;
  bool step(int actor, const Event& e);
  bool wait(int actor, const Event& e);
  bool sync(int actor, const Event& e);
  void arrive(int actor, const Event& e, int parts);
  void fill(int actor, const Event& e);
  void sent(int actor, const Event& e);
  void complete(int slot, const Ring& ring);
  int64_t known(int actor, int slot) const;  // generations that it knows to be complete
  bool known_ready(int actor, const Event& e, int ring);
  int first_cell(const Event& e) const;  // of the slot that it touches
  void look(int actor, const Event& e, bool async);
  void read(int actor, const Event& e, bool async, Begun* begun);
  void write(int actor, const Event& e, Touch touch);
  void close_reads(int actor, const Begun& b);
  void close_writes(int actor, const Begun& b);
  void fence_async(int actor);
  bool reach(int actor, const Event& e, int cta);
  void deadlock(const std::vector<Stream>& streams);
  bool knows(const Clock& c, const Touch& t) const { return !t.open && c[t.who] >= t.at; }
  Clock& clock(int actor) { return clocks_[actor]; }
  Diagnostic* blame(const char* code, int actor, const Event& e, const std::string& message);
  void note(Diagnostic* d, const std::string& what, const Touch& t);
  std::string place(const Event& e) const;

  const Tables* t_;
  std::vector<Clock> clocks_;
  std::vector<ActorState> actors_;
  std::vector<BarrierState> barriers_;
  std::vector<NamedState> named_;
  std::vector<Cell> cells_;
  std::vector<std::vector<int64_t>> last_use_, last_touch_;  // [actor][ring], [actor][strand]
  std::optional<Diagnostic> finding_;
};

}  // namespace kw::exec::schedule
