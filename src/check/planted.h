// Values on which random inputs have nothing to say: rows that vanish, rows that are all the same,
// numbers that are 0 or 1, one large number among small ones, and numbers below the smallest normal
// of the type; of a softmax, scores far from 0 in all of a row, and sinks beside them
// (far_scores.h); integers of the data that are all alike, or lie in runs, and where they are
// compared with positions, all over these (spread.h); in arguments beside the operands, elements
// far from 0 (far_arguments.h); and what a family has of its own (Family::further_planted): scores
// of a product with as much taken off them, small and large rows of a norm. A slope or a sink of 0
// or 1 hides or shows what another never does; equal scores tie, and a row of zeros is divided by
// its own length. A scalar is drawn or 1: kernels divide by a scale that is an argument
// (BUGS_FOUND.md); of a form with several terms it is drawn, for where two of them cancel, what is
// left of a row in 16 bits is rounding in any kernel.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "check/trial.h"

namespace kw::check {

// A case's arguments: drawn, and where it is planted with such values in every tensor and scalar of
// reals. Reports what spec::make_problem does.
std::optional<spec::Problem> problem_of(const spec::Form& form, const Case& c,
                                        Diagnostics& diagnostics);

// The mean magnitude of elements that were drawn: those of heads that a case does not run are 0.
double mean_size(const Tensor& t);

// The arguments that an expression reads; of none none.
void add_reads(const spec::ExprPtr& e, std::set<std::string>& out);

// The arguments that the function divides by or takes the logarithm of: with zeros in them
// PyTorch's result is infinite or NaN too, and says nothing.
std::set<std::string> divisors_of(const spec::Form& form);

// Whether an argument is of integers that a program reads by indices.
bool is_data_of_integers(const spec::Argument& a);

// A case for each kind of them, or for the quick check two and the one of scores far below 0.
std::vector<Case> planted_cases(const spec::Capture& capture, const Options& options);

}  // namespace kw::check
