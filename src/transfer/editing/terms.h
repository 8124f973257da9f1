// Expressions of a specification, as rules ask for them and make them.
#pragma once
#include <string>

#include "operator/expr/expr.h"

namespace kw::transfer {

// An operation of that name: `min`, `and`, a sum as well as a negative.
inline bool is(const spec::ExprPtr& e, const char* op) {
  return (e->kind == spec::Kind::binary || e->kind == spec::Kind::unary) && e->name == op;
}

// Numbers that are ints.
inline bool is_zero(const spec::ExprPtr& e) {
  return e->kind == spec::Kind::number && e->integer == 0;
}
inline bool is_positive_number(const spec::ExprPtr& e) {
  return e->kind == spec::Kind::number && e->type == spec::Type::integer && e->integer > 0;
}

inline spec::ExprPtr size(const std::string& name) {
  return spec::leaf(spec::Kind::size, spec::Type::integer, name);
}

}  // namespace kw::transfer
