// From some sequences of blocks to all of them.
//
// Between two blocks all agents can stop at once: each at the head of its loop over blocks. What
// the future depends on there is finite once it is told relative to the counters: which slots are
// next, which phases have how many arrivals, and which clock knows which live access. Two states
// with the same *fingerprint* have the same futures. So sequences are tried breadth first, block by
// block, from every fingerprint that is new; when none is new any more, every sequence has been
// seen. Inside one long block the same is done at each turn of a loop over keys: when turn i looks
// as turn i + p did, a block with p more key blocks behaves like one without, if the turns are of
// the loops in which everybody was between the two. A loop that was in none is *not repeated*: of
// it is known what it does in as many turns as some kind of block has.
//
// That a fingerprint holds all that matters is argued here and tested by mutants, not proved. Where
// agents cannot stop between blocks, or a program counts otherwise than block by block, nothing is
// claimed beyond the instances.
#pragma once
#include <set>

#include "schedules/clocks.h"
#include "schedules/instances.h"

namespace kw::exec::schedule {

struct Closure {
  bool closed = false;
  std::string why_not;
  int states = 0;
  int period = 0,
      turns = 0;  // turns of a loop over keys repeat after so many, the first `turns` seen
  std::set<const tl::Stmt*> repeated;  // loops
  std::optional<Diagnostic> finding;
};

Closure close_over_sequences(const Profiles& profiles, int most_states, int threads);

}  // namespace kw::exec::schedule
