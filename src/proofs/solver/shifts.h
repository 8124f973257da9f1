// x >> r of a count that varies lies between what least and largest numbers and counts give.
//
// The solver knows a shift by a count that is no number as a function of two integers and nothing
// else. A pass that looks at the least and the greatest word of some bits needs more: where
// l <= x and r lies between two counts, l >> r lies between l shifted by these, and x >> r is no
// less.
#pragma once
#include <string>
#include <vector>

namespace kw::proofs {

// What is so of the shifts to the right that stand in these terms, as terms.
std::vector<std::string> shift_bounds(const std::vector<std::string>& terms);

}  // namespace kw::proofs
