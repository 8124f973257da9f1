// Pointwise operators: the element is an expression of the operands' elements.
#include <fmt/format.h>

#include <cmath>

#include "spec/normalise.h"

namespace kw::spec {
namespace {

ExprPtr operand(Elements& g, const Node& n, size_t position, const Indices& at) {
  return g.broadcast(n.arg(position), at);
}

template <const char* kOp>
ExprPtr unary_of(Elements& g, const Node& n, const Indices& at) {
  return unary(kOp, operand(g, n, 0, at));
}

template <const char* kOp>
ExprPtr binary_of(Elements& g, const Node& n, const Indices& at) {
  return binary(kOp, operand(g, n, 0, at), operand(g, n, 1, at));
}

// a + alpha * b, and the same for the subtractions.
ExprPtr scaled(Elements& g, const Node& n, const Indices& at, const char* op, bool reversed) {
  ExprPtr a = operand(g, n, 0, at), b = operand(g, n, 1, at);
  if (reversed) std::swap(a, b);
  if (const ExprPtr alpha = n.arg(2, "alpha").expr())
    (reversed ? a : b) = binary("*", reversed ? a : b, alpha);
  return binary(op, a, b);
}

ExprPtr add(Elements& g, const Node& n, const Indices& at) { return scaled(g, n, at, "+", false); }
ExprPtr sub(Elements& g, const Node& n, const Indices& at) { return scaled(g, n, at, "-", false); }
ExprPtr rsub(Elements& g, const Node& n, const Indices& at) { return scaled(g, n, at, "-", true); }

ExprPtr div(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr a = operand(g, n, 0, at), b = operand(g, n, 1, at);
  const Value& mode = n.arg(2, "rounding_mode");
  if (mode.kind != Value::Kind::text) return binary("/", a, b);
  if (mode.text == "floor") {
    return a->type == Type::real || b->type == Type::real ? unary("floor", binary("/", a, b))
                                                          : binary("//", a, b);
  }
  return g.refuse(n, "division that rounds toward zero is not read", "use // (floor)");
}

ExprPtr floor_divide(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr a = operand(g, n, 0, at), b = operand(g, n, 1, at);
  return a->type == Type::real || b->type == Type::real ? unary("floor", binary("/", a, b))
                                                        : binary("//", a, b);
}

// A cast. Rounding to a shorter floating type is dropped: casts in a spec are a floor, and a kernel
// may keep more precision.
ExprPtr as_type(const ExprPtr& x, Type type) {
  if (x->type == type) return x;
  if (type == Type::real) return unary("float", x);
  if (type == Type::integer) return unary("int", x);
  return binary("!=", x, x->type == Type::real ? real(0) : integer(0));
}

ExprPtr cast(Elements& g, const Node& n, const Indices& at) {
  return as_type(operand(g, n, 0, at), type_of(n.dtype));
}

ExprPtr where_of(Elements& g, const Node& n, const Indices& at) {
  if (n.args.size() < 3) return g.refuse(n, "aten.where with one argument selects by value");
  return where(as_type(operand(g, n, 0, at), Type::boolean), operand(g, n, 1, at),
               operand(g, n, 2, at));
}

ExprPtr masked_fill(Elements& g, const Node& n, const Indices& at) {
  return where(as_type(operand(g, n, 1, at), Type::boolean), operand(g, n, 2, at),
               operand(g, n, 0, at));
}

ExprPtr clamp(Elements& g, const Node& n, const Indices& at) {
  ExprPtr x = operand(g, n, 0, at);
  const auto bound = [&](size_t position, const char* name, const char* op) {
    const Value& v = n.arg(position, name);
    if (v.kind != Value::Kind::none) x = binary(op, x, g.broadcast(v, at));
  };
  if (n.op != "clamp_max") bound(1, "min", "max");
  if (n.op == "clamp_max") bound(1, "max", "min");
  if (n.op == "clamp") bound(2, "max", "min");
  return x;
}

// Bitwise operators on booleans are the logical ones; on integers they are refused.
template <const char* kOp>
ExprPtr logical(Elements& g, const Node& n, const Indices& at) {
  const bool bitwise = n.op.rfind("logical", 0) != 0;
  ExprPtr a = operand(g, n, 0, at);
  if (bitwise && a->type != Type::boolean)
    return g.refuse(n, fmt::format("aten.{} on integers is not read", n.op));
  a = as_type(a, Type::boolean);
  if (std::string_view(kOp) == "not") return unary("not", a);
  const ExprPtr b = as_type(operand(g, n, 1, at), Type::boolean);
  if (std::string_view(kOp) == "xor") return binary("!=", a, b);
  return binary(kOp, a, b);
}

ExprPtr pow_of(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr a = operand(g, n, 0, at), b = operand(g, n, 1, at);
  if (n.dtype == Dtype::i64 || n.dtype == Dtype::i32) return binary("**", a, b);
  return binary("**", unary("float", a), unary("float", b));
}

ExprPtr square(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr x = operand(g, n, 0, at);
  return binary("*", x, x);
}

ExprPtr lerp_free_negation(Elements& g, const Node& n, const Indices& at) {
  return unary("-", operand(g, n, 0, at));
}

#define KW_NAME(id, text) constexpr char id[] = text
KW_NAME(kMul, "*");
KW_NAME(kLt, "<");
KW_NAME(kLe, "<=");
KW_NAME(kGt, ">");
KW_NAME(kGe, ">=");
KW_NAME(kEq, "==");
KW_NAME(kNe, "!=");
KW_NAME(kMod, "%");
KW_NAME(kMin, "min");
KW_NAME(kMax, "max");
KW_NAME(kAnd, "and");
KW_NAME(kOr, "or");
KW_NAME(kXor, "xor");
KW_NAME(kNot, "not");
KW_NAME(kExp, "exp");
KW_NAME(kExp2, "exp2");
KW_NAME(kLog, "log");
KW_NAME(kLog2, "log2");
KW_NAME(kSqrt, "sqrt");
KW_NAME(kRsqrt, "rsqrt");
KW_NAME(kReciprocal, "reciprocal");
KW_NAME(kTanh, "tanh");
KW_NAME(kSigmoid, "sigmoid");
KW_NAME(kRelu, "relu");
KW_NAME(kAbs, "abs");
KW_NAME(kFloor, "floor");
KW_NAME(kCeil, "ceil");
KW_NAME(kSin, "sin");
KW_NAME(kCos, "cos");
KW_NAME(kErf, "erf");
KW_NAME(kSign, "sign");
#undef KW_NAME

}  // namespace

const std::map<std::string_view, ElementOf>& pointwise_operators() {
  static const std::map<std::string_view, ElementOf> table = {
      {"add", add},
      {"add_", add},
      {"sub", sub},
      {"rsub", rsub},
      {"mul", binary_of<kMul>},
      {"mul_", binary_of<kMul>},
      {"div", div},
      {"true_divide", div},
      {"floor_divide", floor_divide},
      {"remainder", binary_of<kMod>},
      {"pow", pow_of},
      {"square", square},
      {"neg", lerp_free_negation},
      {"lt", binary_of<kLt>},
      {"le", binary_of<kLe>},
      {"gt", binary_of<kGt>},
      {"ge", binary_of<kGe>},
      {"eq", binary_of<kEq>},
      {"ne", binary_of<kNe>},
      {"minimum", binary_of<kMin>},
      {"maximum", binary_of<kMax>},
      {"clamp", clamp},
      {"clamp_min", clamp},
      {"clamp_max", clamp},
      {"logical_and", logical<kAnd>},
      {"logical_or", logical<kOr>},
      {"logical_xor", logical<kXor>},
      {"logical_not", logical<kNot>},
      {"bitwise_and", logical<kAnd>},
      {"bitwise_or", logical<kOr>},
      {"bitwise_xor", logical<kXor>},
      {"bitwise_not", logical<kNot>},
      {"__and__", logical<kAnd>},
      {"__or__", logical<kOr>},
      {"__xor__", logical<kXor>},
      {"where", where_of},
      {"masked_fill", masked_fill},
      {"masked_fill_", masked_fill},
      {"to", cast},
      {"_to_copy", cast},
      {"type_as", cast},
      {"exp", unary_of<kExp>},
      {"exp2", unary_of<kExp2>},
      {"log", unary_of<kLog>},
      {"log2", unary_of<kLog2>},
      {"sqrt", unary_of<kSqrt>},
      {"rsqrt", unary_of<kRsqrt>},
      {"reciprocal", unary_of<kReciprocal>},
      {"tanh", unary_of<kTanh>},
      {"sigmoid", unary_of<kSigmoid>},
      {"relu", unary_of<kRelu>},
      {"abs", unary_of<kAbs>},
      {"floor", unary_of<kFloor>},
      {"ceil", unary_of<kCeil>},
      {"sin", unary_of<kSin>},
      {"cos", unary_of<kCos>},
      {"erf", unary_of<kErf>},
      {"sign", unary_of<kSign>},
  };
  return table;
}

}  // namespace kw::spec
