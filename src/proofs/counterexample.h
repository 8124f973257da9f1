// What a solver's counterexample says, in the words of a report.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "proofs/proofs.h"

namespace kw::proofs {

struct Side {
  std::string what, term, sort = "Bool";
};
using Sides = std::vector<Side>;

// The sizes and indices of `shown` by their values, and what the sides come to there.
void describe(Obligation& o, const std::vector<std::string>& shown,
              const std::vector<std::string>& values, const Sides& sides);

}  // namespace kw::proofs
