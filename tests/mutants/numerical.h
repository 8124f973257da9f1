// Numerical mutants of a TL program: what it computes is changed in one place, not when.
#pragma once
#include "mutate.h"

namespace kw::test {

// Every mutant of every class: an operator, a constant, a name or an operand of one expression, or
// one statement that computes dropped or put elsewhere.
std::vector<Mutant> numerical_mutants_of(const tl::Program& program);

}  // namespace kw::test
