// Every schedule of a small instance, one by one: the second checker.
//
// It shares the list of events with the first (clocks.h) and nothing else. There are no
// clocks: a state is where everybody stands, what barriers and memory hold, and which copies are on
// their way; a race is a state in which two agents are at conflicting accesses at once. Barriers
// have the one bit of phase that the device has, so a wait that is fooled by it is seen to pass too
// early; and an arrival, a wait or a turn that meets another generation than meant, or in one
// schedule another than in the next, is a finding.
//
// A transition is one event that others can notice, and the accesses after it up to the next; an
// access lasts until its agent goes on, an asynchronous one until the wait that ends it. A copy's
// arrival is a transition of its own.
//
// The number of states explodes: agents may be merged (`warps` of a warpgroup into one, two or
// four), and the search stops at `most`.
#pragma once
#include <optional>

#include "schedules/model.h"
#include "support/diagnostic.h"

namespace kw::exec::schedule {

// The same instance with `agents` agents a warpgroup (1, 2 or 4): warps that do the same together.
// False where they do not.
struct Small {
  Tables tables;
  std::vector<Stream> streams;
};
std::optional<Small> merge_warps(const Tables& tables, const std::vector<Stream>& streams,
                                 int agents);

struct Explored {
  int64_t states = 0;
  bool cut = false;
  std::optional<Diagnostic> finding;
};
Explored explore(const Tables& tables, const std::vector<Stream>& streams, int64_t most);

// The counter that hands out blocks (kw::schedule_tiles): `clusters` draw `blocks` numbers from it
// in every order; each number is drawn once, every cluster ends, and the counter is zero again.
struct QueueExplored {
  int64_t states = 0;
  bool right = true;
};
QueueExplored explore_queue(int clusters, int blocks);

}  // namespace kw::exec::schedule
