// Intervals of integer expressions: enough to know when C's `/` and `%`, which truncate, are the
// floor of TL.
#pragma once
#include <cstdint>

#include "tl/syntax/expr.h"

namespace kw::tl {

class Scope;

// Both ends are included; kFar stands for no bound.
struct Interval {
  static constexpr int64_t kFar = int64_t{1} << 60;
  int64_t lo = -kFar, hi = kFar;
  bool operator==(const Interval&) const = default;
};

// What an integer expression can be: sizes are at least 1; record fields, index parameters, loop
// counters from 0, block numbers and uses at least 0; parameters are constants; a let is its
// expression; a var starts at its expression and only counts up.
Interval interval_of(const ExprPtr& e, const Scope& scope);

// Whether C's `a / b` and `a % b` are TL's `a // b` and `a % b`: neither operand can be negative.
// (A zero divisor is an error in both.)
bool division_truncates_alike(const ExprPtr& a, const ExprPtr& b, const Scope& scope);
// Whether a shift by `count` is one that C defines: by 0 to 31.
bool shifts_within_an_int(const ExprPtr& count, const Scope& scope);

}  // namespace kw::tl
