// What formulas over real numbers do not show: x * x / x is x, and no number where x is 0; an
// exponent that is added and taken off again overflows in between.
//
// A program may divide by, or take a root or a logarithm of, what is no zero by its form (1 +
// exp2(x)), what it asks about first (where(x == 0.0, 0.0, reciprocal(x))), constants and numbers
// of the launch, and anything where the specification divides, too. Its constants are no larger and
// no smaller than the specification's need. And references lag by so little that a row of 2^24
// weights does not overflow.
#pragma once
#include <string>

#include "operator/form.h"
#include "tl/program.h"

namespace kw::proofs {

// Why a program may leave the range of fp32 where its formula does not; "": nothing of it is known.
std::string out_of_range(const tl::Program& program, const spec::Form& form);

}  // namespace kw::proofs
