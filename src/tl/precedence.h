// How tightly the parts of an expression bind, from the loosest. A hole of a statement that stands
// beside an operator of its own asks for a level: `$n >= $b` needs at least a sum for b.
#pragma once
#include <string>

#include "tl/expr.h"

namespace kw::tl {

inline constexpr int kAny = 0, kOr = 1, kAnd = 2, kNot = 3, kComparison = 4, kSum = 5, kProduct = 6,
                     kUnary = 7, kPrimary = 8;

// TL text that binds at least as tightly as `low`, in parentheses if need be.
std::string print(const ExprPtr& e, int low);

}  // namespace kw::tl
