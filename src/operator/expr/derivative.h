// What an expression of reals changes by: its derivative, by the rules of the calculus, at every
// point where PyTorch's autograd has one, and its value there.
//
// Where a function has none (|x| at 0, relu at 0, the larger of two that are equal), PyTorch takes
// a value, and so does this one: 0 for |x| and relu, half and half for min and max. What is no
// function of the reals between its steps (floor, int, a comparison) does not change.
#pragma once
#include <optional>

#include "operator/expr/expr.h"

namespace kw::spec {

// d e / d x for a leaf x (Kind::score or Kind::argument), with x's own name. Nothing where e has an
// operator without a derivative; `operation` is that node then.
std::optional<ExprPtr> derivative(const ExprPtr& e, const ExprPtr& x, ExprPtr& operation);

// The same by a part of e, as if it were a variable wherever it stands; a real.
std::optional<ExprPtr> derivative_by(const ExprPtr& e, const ExprPtr& part, ExprPtr& operation);

}  // namespace kw::spec
