// Values on which random inputs have nothing to say: rows that vanish, rows that are all the same,
// numbers that are 0 or 1, one large number among small ones, and numbers below the smallest normal
// of the type; of a softmax, queries that point away from every key, so that a key past the end,
// whose score is 0, has a weight beyond fp32, and 0 times that is NaN; of norms small and large
// ones too (Family::further_planted). A slope or a sink of 0 or 1 hides or shows what another never
// does; equal scores tie, and a row of zeros is divided by its own length. A scalar is drawn or 1:
// kernels divide by a scale that is an argument (BUGS_FOUND.md); of a form with several terms it is
// drawn, for where two of them cancel, what is left of a row in 16 bits is rounding in any kernel.
#pragma once
#include <cstdint>
#include <vector>

#include "check/trial.h"

namespace kw::check {

// A case's arguments: drawn, and where it is planted with such values in every tensor and scalar of
// reals. Reports what spec::make_problem does.
std::optional<spec::Problem> problem_of(const spec::Form& form, const Case& c,
                                        Diagnostics& diagnostics);

// A case for each kind of them, or for the quick check two and the one of scores far below 0.
std::vector<Case> planted_cases(const spec::Capture& capture, const Options& options);

}  // namespace kw::check
