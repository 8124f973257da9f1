// Building and walking trees. What a binary node simplifies to is in binary.cpp.
#include "operator/expr/expr.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "operator/expr/fold.h"
#include "operator/expr/linear.h"
#include "operator/expr/steps.h"

namespace kw::spec {

ExprPtr make(Expr e) { return std::make_shared<const Expr>(std::move(e)); }

ExprPtr integer(int64_t value) {
  Expr e{Kind::number, Type::integer};
  e.integer = value;
  e.value = static_cast<double>(value);
  return make(std::move(e));
}

ExprPtr real(double value) {
  if (std::isinf(value)) {
    const ExprPtr infinity = make({Kind::infinity, Type::real, "inf"});
    if (value > 0) return infinity;
    Expr negative{Kind::unary, Type::real, "-"};
    negative.args = {infinity};
    return make(std::move(negative));
  }
  Expr e{Kind::number, Type::real};
  e.value = value + 0.0;  // no negative zero: it would print and compare as another constant
  return make(std::move(e));
}

ExprPtr boolean(bool value) {
  Expr e{Kind::number, Type::boolean};
  e.integer = value;
  e.value = value;
  return make(std::move(e));
}

ExprPtr placed(ExprPtr e, const Span& span) {
  if (!e || e->span.known() || !span.known()) return e;
  Expr copy = *e;
  copy.span = span;
  return make(std::move(copy));
}

Span place_of(const ExprPtr& e) {
  if (!e || e->span.known()) return e ? e->span : Span{};
  for (const ExprPtr& a : e->args)
    if (const Span s = place_of(a); s.known()) return s;
  return {};
}

ExprPtr leaf(Kind kind, Type type, std::string name) { return make({kind, type, std::move(name)}); }

ExprPtr score_leaf(size_t n) {
  return leaf(Kind::score, Type::real, n ? "s" + std::to_string(n + 1) : "s");
}

size_t score_number(const Expr& leaf) {
  return leaf.name.size() > 1 ? std::stoul(leaf.name.substr(1)) - 1 : 0;
}

ExprPtr read(std::string tensor, Type type, std::vector<ExprPtr> indices) {
  Expr e{Kind::read, type, std::move(tensor)};
  e.args = std::move(indices);
  return make(std::move(e));
}

std::optional<double> constant(const ExprPtr& e) {
  if (e->kind == Kind::number) return e->value;
  if (e->kind == Kind::infinity) return HUGE_VAL;
  if (e->kind == Kind::unary && e->name == "-" && e->args[0]->kind == Kind::infinity)
    return -HUGE_VAL;
  return std::nullopt;
}

ExprPtr of_type(Type type, double value) {
  if (type == Type::boolean) return boolean(value != 0);
  if (type == Type::integer && std::isfinite(value)) return integer(static_cast<int64_t>(value));
  return real(value);
}

namespace {

Type type_of_unary(const std::string& op, Type a) {
  if (op == "not") return Type::boolean;
  if (op == "int") return Type::integer;
  if (op == "-" || op == "abs") return a == Type::boolean ? Type::integer : a;
  return Type::real;
}

// Negation is pushed to where it disappears: into comparisons and and/or for `not`, into sums and
// constants for `-`. Null where the tree stays as it is.
ExprPtr push_not(const ExprPtr& a) {
  if (a->kind == Kind::unary && a->name == "not") return a->args[0];
  if (a->kind != Kind::binary) return nullptr;
  const ExprPtr &x = a->args[0], &y = a->args[1];
  if (a->name == "and") return binary("or", unary("not", x), unary("not", y));
  if (a->name == "or") return binary("and", unary("not", x), unary("not", y));
  if (a->name == "==") return binary("!=", x, y);
  if (a->name == "!=") return binary("==", x, y);
  // not (x < y) is y <= x for integers; for reals a NaN makes both false.
  if (x->type == Type::real || y->type == Type::real) return nullptr;
  if (a->name == "<") return binary("<=", y, x);
  if (a->name == "<=") return binary("<", y, x);
  return nullptr;
}

ExprPtr push_minus(const ExprPtr& a) {
  if (a->type == Type::integer) return to_expr(add({}, linear(a), -1));
  if (a->kind == Kind::unary && a->name == "-") return a->args[0];
  if (a->kind == Kind::binary && a->name == "-") return binary("-", a->args[1], a->args[0]);
  if (a->kind == Kind::binary && a->name == "*" && a->args[1]->kind == Kind::number)
    return binary("*", a->args[0], real(-a->args[1]->value));
  return nullptr;
}

// float(i - j) is -float(j - i): the same distance written in two ways becomes one.
ExprPtr float_of(const ExprPtr& a) {
  if (a->type == Type::real) return a;
  if (a->type == Type::boolean) return where(a, real(1), real(0));
  if (a->kind == Kind::where)
    return where(a->args[0], unary("float", a->args[1]), unary("float", a->args[2]));
  const Linear sum = linear(a);
  if (sum.terms.empty() || sum.terms.front().factor > 0) return nullptr;
  return unary("-", unary("float", to_expr(add({}, sum, -1))));
}

}  // namespace

namespace {
// floor(n / d) of an integer n and a positive integer d, as n // d. A quotient written as n * (1 /
// d) is one where 1 / d is exact.
ExprPtr floor_of(const ExprPtr& a) {
  if (a->kind != Kind::binary || (a->name != "*" && a->name != "/")) return nullptr;
  const bool product = a->name == "*";
  const bool first = product && a->args[0]->kind == Kind::number;
  ExprPtr n = a->args[first ? 1 : 0];
  const ExprPtr& by = a->args[first ? 0 : 1];
  if (n->kind == Kind::unary && n->name == "float") n = n->args[0];
  if (n->type != Type::integer || by->kind != Kind::number) return nullptr;
  const double d = product ? 1 / constant(by).value_or(0) : constant(by).value_or(0);
  int exponent = 0;
  if (!(d >= 1 && d <= 1 << 30) || d != std::floor(d)) return nullptr;
  if (product && std::frexp(d, &exponent) != 0.5) return nullptr;
  return unary("float", binary("//", n, integer(static_cast<int64_t>(d))));
}
}  // namespace

ExprPtr unary(const std::string& op, ExprPtr a) {
  if (a->type == Type::boolean && op != "not") {
    if (op == "float") return float_of(a);
    a = where(a, integer(1), integer(0));
    if (op == "int") return a;
  }
  const Type type = type_of_unary(op, a->type);
  if (const std::optional<double> value = constant(a); value && a->kind == Kind::number)
    return of_type(type, fold_unary(op, *value));
  ExprPtr simpler;
  if (op == "not") simpler = push_not(a);
  if (op == "-") simpler = push_minus(a);
  if (op == "float") simpler = float_of(a);
  if (op == "floor") simpler = floor_of(a);
  if (op == "int" && a->type == Type::integer) simpler = a;
  if (op == "int" && a->kind == Kind::unary && a->name == "float") simpler = a->args[0];
  if (op == "abs" && a->kind == Kind::unary && a->name == "-") simpler = unary("abs", a->args[0]);
  if (op == "abs" && a->type == Type::integer && !linear(a).terms.empty() &&
      linear(a).terms.front().factor < 0)
    simpler = unary("abs", unary("-", a));
  if (simpler) return simpler;
  Expr e{Kind::unary, type, op};
  e.args = {std::move(a)};
  return make(std::move(e));
}

ExprPtr where(ExprPtr condition, ExprPtr a, ExprPtr b) {
  if (condition->kind == Kind::number) return condition->integer ? a : b;
  if (equal(a, b)) return a;
  if (condition->kind == Kind::unary && condition->name == "not")
    return where(condition->args[0], b, a);
  if (a->type == Type::boolean && b->type == Type::boolean) {
    if (a->kind == Kind::number)
      return a->integer ? binary("or", condition, b) : binary("and", unary("not", condition), b);
    if (b->kind == Kind::number)
      return b->integer ? binary("or", unary("not", condition), a) : binary("and", condition, a);
  }
  Type type = a->type == b->type ? a->type : Type::integer;
  if (a->type == Type::real || b->type == Type::real) {
    type = Type::real;
    a = unary("float", a);
    b = unary("float", b);
  } else if (type == Type::integer) {
    a = unary("int", a);
    b = unary("int", b);
    if (const ExprPtr simpler = steps_under(condition, a)) a = simpler;
    if (const ExprPtr simpler = steps_under(unary("not", condition), b)) b = simpler;
    if (equal(a, b)) return a;
  }
  Expr e{Kind::where, type, "where"};
  e.args = {std::move(condition), std::move(a), std::move(b)};
  return make(std::move(e));
}

bool equal(const ExprPtr& a, const ExprPtr& b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->type != b->type || a->name != b->name ||
      a->integer != b->integer || a->args.size() != b->args.size())
    return false;
  // Constants that were computed along two ways, 1 / sqrt(D) and D ** -0.5, are the same constant.
  if (std::fabs(a->value - b->value) > 1e-13 * std::fabs(b->value)) return false;
  for (size_t n = 0; n < a->args.size(); ++n)
    if (!equal(a->args[n], b->args[n])) return false;
  return true;
}

bool mentions(const ExprPtr& e, Kind kind, const std::string& name) {
  if (!e) return false;
  if (e->kind == kind && (name.empty() || e->name == name)) return true;
  for (const ExprPtr& a : e->args)
    if (mentions(a, kind, name)) return true;
  return false;
}

bool is_of_columns(const ExprPtr& e) {
  if (e->kind == Kind::index) return e->name == "d";
  if (e->kind == Kind::read || e->kind == Kind::size || e->kind == Kind::argument) return false;
  return std::all_of(e->args.begin(), e->args.end(), is_of_columns);
}

ExprPtr rewrite(const ExprPtr& e, const std::function<ExprPtr(const ExprPtr&)>& change) {
  if (!e) return e;
  std::vector<ExprPtr> args;
  bool changed = false;
  for (const ExprPtr& a : e->args) {
    args.push_back(rewrite(a, change));
    changed = changed || args.back() != a;
  }
  ExprPtr rebuilt = e;
  if (changed) {
    switch (e->kind) {
      case Kind::unary:
        rebuilt = unary(e->name, args[0]);
        break;
      case Kind::binary:
        rebuilt = binary(e->name, args[0], args[1]);
        break;
      case Kind::where:
        rebuilt = where(args[0], args[1], args[2]);
        break;
      default:
        rebuilt = read(e->name, e->type, args);
        break;
    }
  }
  rebuilt = placed(rebuilt, e->span);
  const ExprPtr replacement = change(rebuilt);
  return replacement ? placed(replacement, e->span) : rebuilt;
}

}  // namespace kw::spec
