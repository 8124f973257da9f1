// What a solver's counterexample says, in the words of a report.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "proofs/proofs.h"

namespace kw::proofs {

using Sides = std::vector<std::pair<std::string, std::string>>;  // what it is, its term

// The sizes and indices of `shown` by their values, and what the sides come to there.
void describe(Obligation& o, const std::vector<std::string>& shown,
              const std::vector<std::string>& values, const Sides& sides);

}  // namespace kw::proofs
