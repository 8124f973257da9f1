// Equalities of real numbers, which no reading sees.
//
// Two reals that are drawn at random are never equal, and two formulas of the exact reading hardly
// ever: a program that drops every score of exactly 0 agrees with one that does not on all cases.
// It is wrong for the zero rows of padded inputs. So an equality that the specification has not, or
// with a number that it has not, makes a check inconclusive, but for two that mean a row without a
// key: `x == -inf`, and a row's own value `== 0.0`.
#pragma once
#include <string>

#include "operator/form.h"
#include "support/diagnostic.h"
#include "tl/program.h"

namespace kw::check {

// Whether there is none. Reports check.equality at each.
bool equalities_are_seen(const tl::Program& program, const spec::Form& form,
                         Diagnostics& diagnostics);

// A comparison of reals that the specification has not: with a number that it compares none with,
// of two of which neither is one, or of data that are computed otherwise (`w * u - w * t > z` for
// `w * (u - t) > z`, which differ where rounding decides). Where the two are equal no case need be.
// "": none; those of a row's own value, of 0 and of infinities are none.
std::string unasked_comparison(const tl::Program& program, const spec::Form& form);

}  // namespace kw::check
