// Where a part stands in an expression.
#pragma once
#include <string>
#include <vector>

#include "operator/expr/expr.h"

namespace kw::spec {

// e with `by` wherever `what` stands; what folds to `what` on the way is replaced too.
ExprPtr replace(const ExprPtr& e, const ExprPtr& what, const ExprPtr& by);

// Where e reads an argument, each place once.
std::vector<ExprPtr> places_of(const ExprPtr& e, const std::string& argument);

}  // namespace kw::spec
