// Interval arithmetic over index expressions: what a predicate does to a whole tile of scores.
//
// Every index, size and read is given a range; the range of an expression contains every value that
// it takes when they vary independently (Moore, Interval Analysis, 1966). Booleans are 0 and 1, so
// the range of a keep predicate is {1} (all kept), {0} (none kept) or {0, 1} (partial, or not
// known). Sums are taken in linear form first, so that an unknown that stands on both sides of a
// comparison cancels.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "operator/expr/expr.h"

namespace kw::transfer {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Interval {
  double low = -kInfinity, high = kInfinity;

  bool is(double value) const { return low == value && high == value; }
};

// What is known about the names of an expression. Without an entry an index is >= 0, a size is
// >= 1, and a scalar argument or a tensor's element may be anything.
struct Box {
  std::map<std::string, Interval> names;  // indices, sizes and scalar arguments
  // The range of a tensor's elements at indices within the given ranges; may be empty.
  std::function<Interval(const std::string& tensor, const std::vector<Interval>& at)> read;
};

// The range of e; a real expression's bounds are rounded outward.
Interval range(const spec::ExprPtr& e, const Box& box);

enum class Kept { all, none, partial };

// What a keep predicate does to the entries of a box; null keeps all.
Kept kept(const spec::ExprPtr& keep, const Box& box);

}  // namespace kw::transfer
