// Integers of the data that are compared with positions: blocks of keys that somebody has chosen,
// lengths, the ends of intervals.
//
// A golden case draws them up to the longest of its sizes, or as in the example. Where they are
// numbers of blocks, most of these are beyond the last block, and in a case of other sizes than the
// golden one's they are all among the first: no list then has many blocks. A case that is planted
// with this has them all over what the position beside them may be, for the case's own sizes, each
// another one, the greatest among them, and in every row of the tensor at another place.
#pragma once
#include <set>
#include <string>

#include "check/trial.h"

namespace kw::check {

// The tensors whose elements are indices of others: beyond these there is nothing.
std::set<std::string> tensors_of_indices(const spec::Form& form);

bool has_spread(const spec::Form& form);
void plant_spread(uint64_t seed, const spec::Form& form, spec::Problem& problem);

}  // namespace kw::check
