// The numbers of a function's scores, made small: a formula in general position.
//
// Of a temperature log(i // 8192 + 1) a few hundred rows show one value, log(1), and a few thousand
// two, on which other formulas agree with it (x itself, where it is of base two). The solver has
// proved the integer to be the specification's whatever its value (proofs/proofs.h); whether the
// formula is the same of every value is the exact reading's to say, on cases whose rows have many.
// So such a number becomes a small one, in the function and in the program alike, and the exact
// reading compares these two: what they make of the integer is what they made of it before.
//
// A program that has the number in another shape (8192 as 4096 * 2) then has another formula. That
// refutes nothing: it is right or wrong at numbers that nobody has compared, so what holds is less
// than every launch.
#pragma once
#include <cstdint>
#include <vector>

#include "operator/form.h"
#include "tl/program.h"

namespace kw::check {

// In order: the integers of at least kPlain that scores, sinks, factors and what follows them are
// computed with. Those by which data are chosen are none of them: data are drawn. Nor are those of
// rows before a product: what is computed there of more than columns is drawn, too.
inline constexpr int64_t kPlain = 17;
std::vector<int64_t> numbers_of_scores(const spec::Form& form);

// Whether an integer of positions, sizes or data becomes a real anywhere in the function.
bool has_integers_in_reals(const spec::Form& form);

// Each of the numbers, of either sign, and what is one or two less than it, by as much from a small
// one of its own; which are drawn by `seed`. Widths of tiles and other parameters stay.
spec::Form made_small(spec::Form form, const std::vector<int64_t>& numbers, uint64_t seed);
tl::Program made_small(tl::Program program, const std::vector<int64_t>& numbers, uint64_t seed);

// What an integer becomes as a real, of both: sums and products of coordinates and sizes are of
// reals, and what else is computed, or read of data, is drawn (num/exact.h): a formula is then seen
// for any integers in its place, not for the few that a case has. `x` and `x * x` are one on 0
// and 1. In rows before a product, and those that a pass behind a kernel turns round, what is
// computed of columns alone stays: a case has each of them.
spec::Form with_drawn_integers(spec::Form form);
tl::Program with_drawn_integers(tl::Program program);

}  // namespace kw::check
