// That turns come: of gradients whose sums have one order (tl/laws/turns.cpp).
//
// A block of keys with number n adds to a block of queries when the value there is n, and makes it
// n + 1; or it waits for 0, which a pass has left. The laws hold who adds to who waits. What is
// left is about numbers, for all sizes: who waits for n has block n - 1 before it, which adds to
// the same block of queries, and who waits for 0 has none before it that does. So those that add to
// a block of queries follow each other, the first finds the 0, and every other what the one before
// has made. And where a launch gives blocks of keys numbers that rise with n, none waits for one
// behind it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "proofs/names.h"
#include "proofs/solver/terms.h"
#include "tl/program.h"

namespace kw::proofs {

struct WaitForTurn {
  std::vector<std::string> premises;
  std::string claim;
  Span span;
};

struct WaitsForTurns {
  std::vector<WaitForTurn> all;
  std::string open;  // why they are not seen; "" where they are
};

WaitsForTurns waits_for_turns(const tl::Program& program, const std::map<std::string, Term>& sizes,
                              const Blocks& blocks, Vocabulary& vocabulary);

}  // namespace kw::proofs
