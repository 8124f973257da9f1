// Numbers that data are compared with, planted in the data.
//
// Of `x == 123456`, `x == 2.0` or `x > 0.5` random data show one side, or never the number itself,
// at which `>` and `>=` part. So in some cases half of a tensor's elements are such numbers, of
// integers also what is one less and one more: those that the function compares its elements with,
// in whatever way it has them. Numbers of the program's own are no interest of these: of integers
// they are asked of the solver, and of reals they narrow the claim (equalities.h).
#pragma once
#include "check/trial.h"
#include "operator/form.h"

namespace kw::check {

bool has_compared_numbers(const spec::Form& form);
void plant_compared_numbers(uint64_t seed, const spec::Form& form, spec::Problem& problem);

}  // namespace kw::check
