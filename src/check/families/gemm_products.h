// Elements of a product that are large, and deep products of which little counts.
//
// Of drawn numbers the elements of a product are about the root of its depth, 20 or 100. So
// `acc * exp2(116.0) * exp2(-116.0)` is `acc` in every case, and infinity for an element of 4096;
// likewise a sigmoid as e / (1 + e), from 89 on. So a case has rows whose elements are about a
// power of two, from 2^5 as far as the function itself stays finite in the type of its result and
// keeps its bits in fp32: every second row below 0, exact, for they are sums of one number.
//
// And a product over 100,000 columns hides 64 of them that are left out: they are a thousandth of
// it, less than rounding. So one case at each such depth has nothing but the first columns and the
// last.
#pragma once
#include "check/trial.h"

namespace kw::check::families {

// False where the function can do none of it: then nothing is changed.
bool plant_products(const spec::Form& form, spec::Problem& problem);
void plant_ends(const spec::Form& form, spec::Problem& problem);

}  // namespace kw::check::families
