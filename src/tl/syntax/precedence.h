// How tightly the parts of an expression bind, from the loosest. A hole of a statement that stands
// beside an operator of its own asks for a level: `$n >= $b` needs at least a sum for b.
#pragma once
#include <string>

#include "tl/syntax/expr.h"

namespace kw::tl {

// Operators on bits have one level, and beside another operator that binds tighter than a
// comparison they stand in parentheses: C and Python rank them differently, and nobody remembers
// how.
inline constexpr int kAny = 0, kOr = 1, kAnd = 2, kNot = 3, kComparison = 4, kBits = 5, kSum = 6,
                     kProduct = 7, kUnary = 8, kPrimary = 9;

// TL text that binds at least as tightly as `low`, in parentheses if need be.
std::string print(const ExprPtr& e, int low);

}  // namespace kw::tl
