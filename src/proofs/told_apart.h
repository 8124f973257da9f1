// Cases show which of two integers a program takes where the two differ in some element that cases
// have. min(i - j, i // 2 + 300) is i - j up to row 600: whoever has i - j in its place passes all
// cases at 400 rows, and each of the two is one of the specification's.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "proofs/integers.h"
#include "proofs/proofs.h"

namespace kw::proofs {

// Of integers of the data, the range that cases draw them from; where nobody says, lengths: what is
// beyond is nobody's to see.
inline constexpr std::array<int64_t, 2> kLengths = {0, 300};

// One of the specification's (Specified::whole) and one of the program's that are the same in all
// elements that cases have and keep, and not in others, as a sentence; "" where there are none.
// `page`: cases have keys in whole pages of so many, or 1. `drawn`: between what integers of the
// data lie in cases. `of_kept` asks a claim of the elements that are kept where a use is.
std::string not_told_apart(
    const std::vector<Term>& specified, const Uses& uses, const Solver& solver,
    const std::map<std::string, Term>& sizes, int64_t page, const std::vector<std::string>& drawn,
    const std::function<Question(const Use&, const std::string& claim)>& of_kept);

}  // namespace kw::proofs
