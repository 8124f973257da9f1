#include "spec/normalise.h"

#include <fmt/format.h>

#include "spec/linear.h"

namespace kw::spec {
namespace {

bool is_one(const ExprPtr& e) { return e->kind == Kind::number && e->integer == 1; }

// The largest value that an index expression takes, where that is a constant; -1 when it is not
// known or the expression may be negative.
int64_t largest(const ExprPtr& e, const std::map<std::string, ExprPtr>& extents) {
  if (e->kind == Kind::number) return e->integer;
  if (e->kind == Kind::index) {
    const auto found = extents.find(e->name);
    const bool known = found != extents.end() && found->second->kind == Kind::number;
    return known ? found->second->integer - 1 : -1;
  }
  if (e->kind != Kind::binary) return -1;
  if (e->name == "%" && e->args[1]->kind == Kind::number) return e->args[1]->integer - 1;
  const int64_t a = largest(e->args[0], extents), b = largest(e->args[1], extents);
  if (a < 0 || b < 0) return -1;
  if (e->name == "+") return a + b;
  if (e->name == "*") return a * b;
  if (e->name == "//" && e->args[1]->kind == Kind::number) return a / e->args[1]->integer;
  return -1;
}

// x / size where x is a product that has size as a factor; null otherwise.
ExprPtr without_factor(const ExprPtr& x, const ExprPtr& size) {
  if (equal(x, size)) return integer(1);
  if (x->kind != Kind::binary || x->name != "*") return nullptr;
  if (ExprPtr a = without_factor(x->args[0], size)) return binary("*", a, x->args[1]);
  if (ExprPtr b = without_factor(x->args[1], size)) return binary("*", x->args[0], b);
  return nullptr;
}

}  // namespace

ExprPtr Elements::element(int number, const Indices& at) {
  if (failed_) return real(0);
  const Node& n = node(number);
  if (n.op == "argument") {
    const bool tensor = !n.shape.empty() || graph_.arguments[number].is_tensor;
    return tensor ? read(n.name, type_of(n.dtype), at)
                  : leaf(Kind::argument, type_of(n.dtype), n.name);
  }
  if (is_reduction(n)) return read(fmt::format("%{}", number), Type::real, at);
  for (const auto* family :
       {&view_operators(), &pointwise_operators(), &creation_operators(), &gather_operators()})
    if (const auto found = family->find(n.op); found != family->end())
      return found->second(*this, n, at);
  return refuse(
      n, fmt::format("the operator aten.{} is not one that an attention form can hold", n.op),
      "write it with matmul, einsum, softmax, where, comparisons and pointwise arithmetic");
}

ExprPtr Elements::broadcast(const Value& value, const Indices& at) {
  if (value.kind != Value::Kind::node) {
    const ExprPtr e = value.expr();
    return e ? e : real(0);
  }
  const Node& n = node(value.node);
  Indices own;
  const size_t skipped = at.size() - n.rank();
  for (int d = 0; d < n.rank(); ++d)
    own.push_back(is_one(n.shape[d]) ? integer(0) : at[skipped + d]);
  return element(value.node, own);
}

int Elements::reduced(const ExprPtr& e) {
  if (e->kind != Kind::read || e->name.empty() || e->name[0] != '%') return -1;
  return std::stoi(e->name.substr(1));
}

ExprPtr Elements::index(const std::string& name, ExprPtr extent) {
  extents_[name] = std::move(extent);
  return leaf(Kind::index, Type::integer, name);
}

Elements::Split Elements::split(const ExprPtr& flat, const ExprPtr& size) const {
  if (is_one(size)) return {flat, integer(0)};
  Linear whole, rest;
  const Linear sum = linear(flat);
  for (const Linear::Term& t : sum.terms) {
    const ExprPtr quotient = size->kind == Kind::number
                                 ? (t.factor % size->integer == 0 ? t.atom : nullptr)
                                 : without_factor(t.atom, size);
    if (!quotient)
      rest.terms.push_back(t);
    else if (size->kind == Kind::number)
      whole = add(whole, linear(quotient), t.factor / size->integer);
    else
      whole = add(whole, linear(quotient), t.factor);
  }
  (size->kind == Kind::number && sum.constant % size->integer == 0 ? whole : rest).constant =
      size->kind == Kind::number && sum.constant % size->integer == 0
          ? whole.constant + sum.constant / size->integer
          : sum.constant;
  const ExprPtr remainder = to_expr(rest);
  bool fits = rest.terms.empty() && rest.constant == 0;
  if (size->kind == Kind::number) {
    const int64_t top = largest(remainder, extents_);
    fits = fits || (top >= 0 && top < size->integer);
  } else if (remainder->kind == Kind::index) {
    const auto found = extents_.find(remainder->name);
    fits = fits || (found != extents_.end() && equal(found->second, size));
  }
  if (fits) return {to_expr(whole), remainder};
  return {binary("//", flat, size), binary("%", flat, size)};
}

ExprPtr Elements::refuse(const Node& node, const std::string& why, const std::string& hint) {
  if (!failed_) {
    Diagnostic& d = diagnostics_.error("spec.operator", node.span, why);
    d.hint = hint;
  }
  failed_ = true;
  return real(0);
}

}  // namespace kw::spec
