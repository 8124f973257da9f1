// Reading 2 of a program: reals are elements of an exact algebra (num/exact.h).
//
// The statements are those of the values reading: who runs, what waits for what, where tiles lie,
// integers, sizes and masks by indices are the same code. Only what happens to reals differs, tile
// by tile, and stands here:
//   - rounding (stores, to_operand) changes nothing;
//   - `online_max` and `row_max` give any reference: whether it rises, and to what, is drawn by the
//     launch's seed, with the matching factor, because no result may depend on it. Only a row whose
//     reference is -inf must be raised by its first score that is not. The flag is set where a row
//     was raised, and otherwise by chance, as "it may say so needlessly": both arms run;
//   - `any_exceeds` holds where a reference is -inf, and otherwise by chance;
//   - a branch on a comparison of reals that is opaque is noted in Outcome::branches.
#pragma once
#include "exec/arithmetic.h"
#include "exec/machine.h"

namespace kw::exec {

// Numbers of one operand: integers and booleans in x, reals (and what booleans depend on) in e.
struct Operand {
  Type type;
  const double* x;
  const exact::Element* e;
};

// fn of n numbers; x and e receive the results.
void exact_apply(const exact::Algebra& algebra, Fn fn, Type result, int n, const Operand in[3],
                 double* x, exact::Element* e);

// A real argument: named by the caller, a constant, or what its expression gave.
Value exact_argument(Machine& m, const std::string& name, const Value& value);
// Draws the elements that an input's numbers name.
void exact_input(Machine& m, Global& g);

void exact_total(Machine& m, const Row& from, Row& to);  // a copy, or the total of a lane sum
void exact_row_sum(Machine& m, const Tile& tile, Row& sum);
void exact_row_max(Machine& m, const Tile& tile, Row& reference);
// True: the flag is set.
bool exact_raise(Machine& m, const Tile& scores, const exact::Element& scale, Row& reference,
                 Row& factor);
void exact_add(Machine& m, const Row& more, Row& sum);
bool exact_exceeds(Machine& m, const Row& reference);

}  // namespace kw::exec
