// Differences of two large numbers: products near 100, and an argument that is taken off them.
//
// Weights that are made of a log-sum-exp, exp(s - lse), are of no interest where both are about 1:
// exp(s) / exp(lse) is the same there. So of a product whose element goes into an exponential
// beside an argument, all scores lie near 100, and the argument's elements are such that the
// largest exponent of each is 0, as a logarithm of a sum has it.
#pragma once
#include "check/trial.h"

namespace kw::check::families {

// Whether the form has such an exponential.
bool has_balanced(const spec::Form& form);
void plant_balanced(const spec::Form& form, spec::Problem& problem);

}  // namespace kw::check::families
