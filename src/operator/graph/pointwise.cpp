// Pointwise operators: the element is an expression of the operands' elements.
#include <fmt/format.h>

#include <cmath>

#include "operator/graph/normalise.h"

namespace kw::spec {
namespace {

ExprPtr operand(Elements& g, const Node& n, size_t position, const Indices& at) {
  return g.broadcast(n.arg(position), at);
}

// ATen's name and ours, where they differ or the node is binary.
const char* symbol(const std::string& op) {
  static const std::map<std::string_view, const char*> table = {
      {"mul", "*"},         {"mul_", "*"},         {"remainder", "%"},
      {"lt", "<"},          {"le", "<="},          {"gt", ">"},
      {"ge", ">="},         {"eq", "=="},          {"ne", "!="},
      {"minimum", "min"},   {"maximum", "max"},    {"logical_and", "and"},
      {"logical_or", "or"}, {"logical_xor", "!="}, {"bitwise_and", "&"},
      {"bitwise_or", "|"},  {"bitwise_xor", "^"},  {"__and__", "&"},
      {"__or__", "|"},      {"__xor__", "^"},      {"__iand__", "&"},
      {"__ior__", "|"},     {"__ixor__", "^"},     {"bitwise_left_shift", "<<"},
      {"__lshift__", "<<"}, {"__rshift__", ">>"},  {"bitwise_right_shift", ">>"}};
  return table.at(op);
}

ExprPtr unary_of(Elements& g, const Node& n, const Indices& at) {
  return unary(n.op == "neg" ? "-" : n.op, operand(g, n, 0, at));
}

ExprPtr log1p(Elements& g, const Node& n, const Indices& at) {
  return unary("log", binary("+", operand(g, n, 0, at), integer(1)));
}

ExprPtr expm1(Elements& g, const Node& n, const Indices& at) {
  return binary("-", unary("exp", operand(g, n, 0, at)), integer(1));
}

ExprPtr binary_of(Elements& g, const Node& n, const Indices& at) {
  return binary(symbol(n.op), operand(g, n, 0, at), operand(g, n, 1, at));
}

// a + alpha * b, and the same for the subtractions.
ExprPtr scaled(Elements& g, const Node& n, const Indices& at, const char* op, bool reversed) {
  ExprPtr a = operand(g, n, 0, at), b = operand(g, n, 1, at);
  if (reversed) std::swap(a, b);
  if (const ExprPtr alpha = n.arg(2, "alpha").expr())
    (reversed ? a : b) = binary("*", reversed ? a : b, alpha);
  return binary(op, a, b);
}

// A cast. Rounding to a shorter floating type is dropped: casts in a spec are a floor, and a kernel
// may keep more precision.
ExprPtr as_type(const ExprPtr& x, Type type) {
  if (x->type == type) return x;
  if (type == Type::real) return unary("float", x);
  if (type == Type::integer) return unary("int", x);
  return binary("!=", x, x->type == Type::real ? real(0) : integer(0));
}

// A sum of two masks is either of them.
ExprPtr add(Elements& g, const Node& n, const Indices& at) {
  if (n.dtype == Dtype::boolean)
    return binary("or", as_type(operand(g, n, 0, at), Type::boolean),
                  as_type(operand(g, n, 1, at), Type::boolean));
  return scaled(g, n, at, "+", false);
}
ExprPtr sub(Elements& g, const Node& n, const Indices& at) { return scaled(g, n, at, "-", false); }
ExprPtr rsub(Elements& g, const Node& n, const Indices& at) { return scaled(g, n, at, "-", true); }

ExprPtr div(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr a = operand(g, n, 0, at), b = operand(g, n, 1, at);
  const Value& mode = n.arg(2, "rounding_mode");
  if (mode.kind != Value::Kind::text) return binary("/", a, b);
  if (mode.text == "floor") return floor_of_quotient(g, n, at);
  if (const ExprPtr quotient = toward_zero("//", a, b)) return quotient;
  return g.refuse(n, "division that rounds toward zero is supported for integers and a constant",
                  "divide integers by a number, or use // (floor)");
}

// What a division toward zero leaves, with the sign of a.
ExprPtr fmod(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr rest = toward_zero("%", operand(g, n, 0, at), operand(g, n, 1, at));
  return rest ? rest
              : g.refuse(n, "torch.fmod is supported for integers and a constant",
                         "divide integers by a number, or use % (torch.remainder)");
}

ExprPtr rounded(Elements& g, const Node& n, const Indices& at) { return whole_of(g, n, at, n.op); }

ExprPtr cast(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr x = operand(g, n, 0, at);
  if (x->type == Type::real && type_of(n.dtype) == Type::integer) return whole_of(g, n, at, "int");
  return as_type(x, type_of(n.dtype));
}

ExprPtr where_of(Elements& g, const Node& n, const Indices& at) {
  if (n.args.size() < 3)
    return g.refuse(
        n, "aten.where with one argument has a data-dependent shape, which is not supported");
  return where(as_type(operand(g, n, 0, at), Type::boolean), operand(g, n, 1, at),
               operand(g, n, 2, at));
}

ExprPtr masked_fill(Elements& g, const Node& n, const Indices& at) {
  return where(as_type(operand(g, n, 1, at), Type::boolean), operand(g, n, 2, at),
               operand(g, n, 0, at));
}

// torch.min(a, b); with one tensor it is a reduction.
ExprPtr least_of(Elements& g, const Node& n, const Indices& at) {
  if (n.args.size() != 2 || n.args[1].kind != Value::Kind::node)
    return g.refuse(n, fmt::format("aten.{} over a dimension is not supported", n.op),
                    "torch.minimum and torch.maximum take two tensors");
  return binary(n.op, operand(g, n, 0, at), operand(g, n, 1, at));
}

// At its bounds a clamp's derivative is 1, where that of a maximum is shared and relu's is 0: for
// gradients it is a choice.
ExprPtr clamp(Elements& g, const Node& n, const Indices& at) {
  ExprPtr x = operand(g, n, 0, at);
  const bool differentiated = g.graph().training == Training::backward && x->type == Type::real;
  const auto bound = [&](size_t position, const char* name, const char* op) {
    const Value& v = n.arg(position, name);
    if (v.kind == Value::Kind::none) return;
    const ExprPtr b = g.broadcast(v, at);
    if (differentiated) {
      const bool least = op == std::string_view("max");
      x = where(binary("<", least ? x : b, least ? b : x), b, x);
      return;
    }
    const bool zero = x->type == Type::real && b->kind == Kind::number && b->value == 0;
    x = zero && op == std::string_view("max") ? unary("relu", x) : binary(op, x, b);
  };
  if (n.op != "clamp_max") bound(1, "min", "max");
  if (n.op == "clamp_max") bound(1, "max", "min");
  if (n.op == "clamp" || n.op == "clip") bound(2, "max", "min");
  return x;
}

ExprPtr logical(Elements& g, const Node& n, const Indices& at) {
  return binary(symbol(n.op), as_type(operand(g, n, 0, at), Type::boolean),
                as_type(operand(g, n, 1, at), Type::boolean));
}

ExprPtr logical_not(Elements& g, const Node& n, const Indices& at) {
  return unary("not", as_type(operand(g, n, 0, at), Type::boolean));
}

// All bits turned, which in two's complement is -x - 1.
ExprPtr bitwise_not(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr x = operand(g, n, 0, at);
  return x->type == Type::boolean ? unary("not", x) : binary("-", integer(-1), x);
}

// Products, or a number.
ExprPtr power_of_integers(Elements& g, const Node& n, const ExprPtr& a, const ExprPtr& b) {
  constexpr int64_t kMostFactors = 8;
  const bool times = b->kind == Kind::number && b->integer >= 0 && b->integer <= kMostFactors;
  if (!times && (a->kind != Kind::number || b->kind != Kind::number))
    return g.refuse(n,
                    fmt::format("an integer to the power of an integer is supported for constant "
                                "powers from 0 to {}",
                                kMostFactors),
                    "make the base a float, as in 2.0 ** (i - j)");
  if (!times) return binary("**", a, b);
  ExprPtr product = integer(1);
  for (int64_t factor = 0; factor < b->integer; ++factor) product = binary("*", product, a);
  return product;
}

ExprPtr pow_of(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr a = operand(g, n, 0, at), b = operand(g, n, 1, at);
  if (n.dtype == Dtype::i64 || n.dtype == Dtype::i32) return power_of_integers(g, n, a, b);
  return binary("**", unary("float", a), unary("float", b));
}

ExprPtr square(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr x = operand(g, n, 0, at);
  return binary("*", x, x);
}

}  // namespace

const std::map<std::string_view, ElementOf>& pointwise_operators() {
  static const std::map<std::string_view, ElementOf> table = {
      {"add", add},
      {"add_", add},
      {"sub", sub},
      {"rsub", rsub},
      {"mul", binary_of},
      {"mul_", binary_of},
      {"div", div},
      {"true_divide", div},
      {"floor_divide", floor_of_quotient},
      {"remainder", binary_of},
      {"fmod", fmod},
      {"pow", pow_of},
      {"square", square},
      {"lt", binary_of},
      {"le", binary_of},
      {"gt", binary_of},
      {"ge", binary_of},
      {"eq", binary_of},
      {"ne", binary_of},
      {"minimum", binary_of},
      {"maximum", binary_of},
      {"min", least_of},
      {"max", least_of},
      {"clamp", clamp},
      {"clip", clamp},
      {"clamp_min", clamp},
      {"clamp_max", clamp},
      {"logical_and", logical},
      {"logical_or", logical},
      {"logical_xor", logical},
      {"logical_not", logical_not},
      {"bitwise_and", binary_of},
      {"bitwise_or", binary_of},
      {"bitwise_xor", binary_of},
      {"bitwise_left_shift", binary_of},
      {"bitwise_right_shift", binary_of},
      {"__and__", binary_of},
      {"__or__", binary_of},
      {"__xor__", binary_of},
      {"__iand__", binary_of},
      {"__ior__", binary_of},
      {"__ixor__", binary_of},
      {"__lshift__", binary_of},
      {"__rshift__", binary_of},
      {"bitwise_not", bitwise_not},
      {"where", where_of},
      {"masked_fill", masked_fill},
      {"masked_fill_", masked_fill},
      {"to", cast},
      {"_to_copy", cast},
      {"type_as", cast},
      {"neg", unary_of},
      {"exp", unary_of},
      {"exp2", unary_of},
      {"log", unary_of},
      {"log1p", log1p},
      {"expm1", expm1},
      {"log2", unary_of},
      {"sqrt", unary_of},
      {"rsqrt", unary_of},
      {"reciprocal", unary_of},
      {"tanh", unary_of},
      {"sigmoid", unary_of},
      {"relu", unary_of},
      {"abs", unary_of},
      {"floor", rounded},
      {"ceil", rounded},
      {"sin", unary_of},
      {"cos", unary_of},
      {"erf", unary_of},
      {"sign", unary_of},
  };
  return table;
}

}  // namespace kw::spec
