// x // n and x % n of an n that is no number, where x is less than n, or than twice as much.
//
// Of a quotient of two symbols the solver has no more than a product of two. What functions ask of
// them is mostly which half a position lies in (i % length), and that is a comparison.
#pragma once
#include <string>
#include <vector>

namespace kw::proofs {

// What is so of the quotients and remainders by symbols that stand in these terms, as terms.
std::vector<std::string> small_quotients(const std::vector<std::string>& terms);

}  // namespace kw::proofs
