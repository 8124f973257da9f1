// Step functions of an integer: c0 + sum of f * where(condition, 1, 0).
//
// Users make integers of reals: T5's buckets are log(n / 8) / log(16) * 8, cut to an integer. At
// the edge of a bucket the real is an integer, or would be, and which bucket n is in depends on the
// order of the roundings. No kernel, and no simplification, keeps that order. So the function is
// evaluated here, as the user wrote it and in fp64, wherever it steps; what is left is exact: whole
// numbers where the distance passes 12, 16, 23, ... A number that clamps the function cuts its
// steps away.
#pragma once
#include <functional>
#include <optional>

#include "operator/expr/expr.h"

namespace kw::spec {

constexpr int kMostSteps = 256;

// f of the integer expression n as such a sum; null where f has no value anywhere, more than
// kMostSteps steps, or goes up and down. `f` gives nothing where the function has no finite value,
// or where no element has this n: there the sum goes on as at the nearest n that has one.
ExprPtr steps_of(const ExprPtr& n, const std::function<std::optional<double>(int64_t)>& f);

// min(x, bound) or max(x, bound) of such a sum, with the steps that it leaves; null of anything
// else.
ExprPtr clamped_steps(const std::string& op, const ExprPtr& x, int64_t bound);

// Such a sum where the condition, a comparison of the same integer, holds; null if that changes
// nothing.
ExprPtr steps_under(const ExprPtr& condition, const ExprPtr& x);

}  // namespace kw::spec
