// What operators do to numbers: shared by constant folding and by evaluation, so that they cannot
// disagree.
#pragma once
#include <optional>
#include <string>

#include "spec/expr.h"

namespace kw::spec {

enum class Op {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  minimum,
  maximum,
  equal,
  not_equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  negate,
  logical_not,
  exp,
  exp2,
  log,
  log2,
  sqrt,
  rsqrt,
  reciprocal,
  tanh,
  sigmoid,
  relu,
  abs,
  floor,
  ceil,
  sin,
  cos,
  to_float,
  to_int,
  erf,
  sign,
  invalid,
};

Op op_of(Kind kind, const std::string& name);  // invalid when there is no such operator
double apply(Op op, double a, double b);

double fold_unary(const std::string& op, double a);
double fold_binary(const std::string& op, double a, double b);

// A number or an infinity, of either sign.
std::optional<double> constant(const ExprPtr& e);
ExprPtr of_type(Type type, double value);
ExprPtr make(Expr e);

}  // namespace kw::spec
