// Tensors that the function makes: the element is a number or a function of the indices.
#include <fmt/format.h>

#include "operator/graph/normalise.h"

namespace kw::spec {
namespace {

ExprPtr typed(const Node& n, double value) {
  if (n.dtype == Dtype::boolean) return boolean(value != 0);
  return is_float(n.dtype) ? real(value) : integer(static_cast<int64_t>(value));
}

ExprPtr zeros(Elements&, const Node& n, const Indices&) { return typed(n, 0); }
ExprPtr ones(Elements&, const Node& n, const Indices&) { return typed(n, 1); }

// full(size, value), full_like(x, value), new_full(x, size, value), scalar_tensor(value): the value
// is the last positional operand.
ExprPtr full(Elements& g, const Node& n, const Indices& at) {
  const size_t position = n.op == "new_full" ? 2 : n.op == "scalar_tensor" ? 0 : 1;
  const Value& value = n.arg(position, "fill_value");
  const ExprPtr e = value.kind == Value::Kind::node ? g.element(value.node, {}) : value.expr();
  (void)at;
  if (!e) return g.refuse(n, fmt::format("aten.{} has no value", n.op));
  if (e->kind == Kind::number) return typed(n, e->value);
  return is_float(n.dtype) ? unary("float", e) : e;
}

// arange(end), arange(start, end), arange(start, end, step)
ExprPtr arange(Elements& g, const Node& n, const Indices& at) {
  ExprPtr start = n.args.size() > 1 ? n.args[0].expr() : integer(0);
  ExprPtr step = n.args.size() > 2 ? n.args[2].expr() : integer(1);
  if (const ExprPtr named = n.arg(9, "step").expr()) step = named;
  if (!start || !step) return g.refuse(n, "aten.arange from a tensor's value is not supported");
  const ExprPtr value = binary("+", start, binary("*", at[0], step));
  return is_float(n.dtype) ? unary("float", value) : value;
}

// tril keeps what lies on and below the diagonal: column - row <= diagonal.
ExprPtr triangle(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr row = at[at.size() - 2], column = at[at.size() - 1];
  const Value& given = n.arg(1, "diagonal");
  const ExprPtr diagonal = given.kind == Value::Kind::none ? integer(0) : given.expr();
  if (!diagonal) return g.refuse(n, "the diagonal is a tensor's value");
  const ExprPtr distance = binary("-", column, row);
  const ExprPtr kept =
      n.op == "tril" ? binary("<=", distance, diagonal) : binary("<=", diagonal, distance);
  const ExprPtr x = g.element(n.args[0].node, at);
  return where(kept, x, typed(n, 0));
}

ExprPtr eye(Elements&, const Node& n, const Indices& at) {
  return where(binary("==", at[0], at[1]), typed(n, 1), typed(n, 0));
}

// A tensor of numbers in the user's code: one number, or all the same.
ExprPtr constant_tensor(Elements& g, const Node& n, const Indices&) {
  const std::vector<Value>& values = n.args[0].list;
  for (const Value& v : values)
    if (v.real != values[0].real)
      return g.refuse(n, "a tensor of different constants is used, which the form cannot hold",
                      "make it an argument of the function, or compute it from arange");
  if (values.empty()) return g.refuse(n, "a tensor of constants is too large to read");
  return typed(n, values[0].real);
}

}  // namespace

const std::map<std::string_view, ElementOf>& creation_operators() {
  static const std::map<std::string_view, ElementOf> table = {
      {"zeros", zeros},        {"zeros_like", zeros}, {"new_zeros", zeros},
      {"ones", ones},          {"ones_like", ones},   {"new_ones", ones},
      {"full", full},          {"full_like", full},   {"new_full", full},
      {"scalar_tensor", full}, {"arange", arange},    {"tril", triangle},
      {"triu", triangle},      {"eye", eye},          {"constant", constant_tensor},
  };
  return table;
}

}  // namespace kw::spec
