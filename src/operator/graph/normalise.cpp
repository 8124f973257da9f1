#include "operator/graph/normalise.h"

#include <fmt/format.h>

#include <algorithm>

#include "operator/expr/linear.h"

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

// A size as a number times symbols.
struct Monomial {
  int64_t number = 1;
  std::vector<ExprPtr> symbols;
};

void multiply(Monomial& m, const ExprPtr& e) {
  if (e->kind == Kind::number) {
    m.number *= e->integer;
  } else if (e->kind == Kind::binary && e->name == "*") {
    multiply(m, e->args[0]);
    multiply(m, e->args[1]);
  } else {
    m.symbols.push_back(e);
  }
}

// b / a; null where a does not divide b.
ExprPtr quotient(const ExprPtr& b, const ExprPtr& a) {
  Monomial above, below;
  multiply(above, b);
  multiply(below, a);
  if (below.number == 0 || above.number % below.number != 0) return nullptr;
  for (const ExprPtr& s : below.symbols) {
    const auto found = std::find_if(above.symbols.begin(), above.symbols.end(),
                                    [&](const ExprPtr& x) { return equal(x, s); });
    if (found == above.symbols.end()) return nullptr;
    above.symbols.erase(found);
  }
  ExprPtr out = integer(above.number / below.number);
  for (const ExprPtr& s : above.symbols) out = binary("*", out, s);
  return out;
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
  if (is_reduction(n)) return placed(read(fmt::format("%{}", number), Type::real, at), n.span);
  for (const auto* family :
       {&view_operators(), &pointwise_operators(), &creation_operators(), &gather_operators()})
    if (const auto found = family->find(n.op); found != family->end())
      return placed(found->second(*this, n, at), n.span);
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

// The terms that size divides make the quotient; the others are the remainder if they are known to
// stay below size.
Elements::Split Elements::split(const ExprPtr& flat, const ExprPtr& size) const {
  if (is_one(size)) return {flat, integer(0)};
  Linear whole, rest;
  const Linear sum = linear(flat);
  for (const Linear::Term& t : sum.terms) {
    const ExprPtr q = quotient(binary("*", t.atom, integer(t.factor)), size);
    if (q)
      whole = add(whole, linear(q));
    else
      rest.terms.push_back(t);
  }
  const ExprPtr of_constant = quotient(integer(sum.constant), size);
  if (of_constant)
    whole = add(whole, linear(of_constant));
  else
    rest.constant = sum.constant;
  const ExprPtr remainder = to_expr(rest);
  if (is_below(remainder, size)) return {to_expr(whole), remainder};
  return {binary("//", flat, size), binary("%", flat, size)};
}

bool Elements::is_below(const ExprPtr& e, const ExprPtr& size) const {
  if (e->kind == Kind::number && e->integer == 0) return true;
  if (size->kind == Kind::number) {
    const int64_t top = largest(e, extents_);
    return top >= 0 && top < size->integer;
  }
  const auto found = e->kind == Kind::index ? extents_.find(e->name) : extents_.end();
  return found != extents_.end() && equal(found->second, size);
}

bool divides(const ExprPtr& a, const ExprPtr& b) { return quotient(b, a) != nullptr; }

ExprPtr Elements::refuse(const Node& node, const std::string& why, const std::string& hint,
                         const std::string& code) {
  if (!failed_) {
    Diagnostic& d = diagnostics_.error(code, node.span, why);
    d.hint = hint;
  }
  failed_ = true;
  return real(0);
}

}  // namespace kw::spec
