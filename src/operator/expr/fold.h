// What operators do to numbers: shared by constant folding and by evaluation, so that they cannot
// disagree.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "operator/expr/expr.h"

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
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
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
// The same of `count` elements, one after the other.
void apply(Op op, const double* a, const double* b, int64_t count, double* out);

bool is_bit_operator(const std::string& op);  // & | ^ << >>
// What one of these simplifies to, and what a comparison of one bit with a number does; null where
// the tree stays as it is.
ExprPtr bits_of(const std::string& op, const ExprPtr& a, const ExprPtr& b);
ExprPtr bit_test(bool equal, const ExprPtr& a, const ExprPtr& b);

double fold_unary(const std::string& op, double a);
double fold_binary(const std::string& op, double a, double b);

// A number or an infinity, of either sign.
std::optional<double> constant(const ExprPtr& e);
ExprPtr of_type(Type type, double value);
ExprPtr make(Expr e);

}  // namespace kw::spec
