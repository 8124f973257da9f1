// What a binary node simplifies to.
//
// Four families. Integer sums and comparisons go through their linear form. And/or are kept as
// sorted lists without repetition, so that the order in which a user wrote a mask does not matter.
// Real arithmetic only moves constants to the right and signs outward: it never reassociates two
// unknowns. Bits of coordinates become quotients and remainders, bits of data are bits.cpp's.
#include <algorithm>
#include <limits>

#include "operator/expr/expr.h"
#include "operator/expr/fold.h"
#include "operator/expr/linear.h"
#include "operator/expr/steps.h"

namespace kw::spec {
namespace {

bool is_minus(const ExprPtr& e) { return e->kind == Kind::unary && e->name == "-"; }
bool is_comparison(const std::string& op) {
  return op == "==" || op == "!=" || op == "<" || op == "<=";
}

ExprPtr node(const std::string& op, Type type, ExprPtr a, ExprPtr b) {
  Expr e{Kind::binary, type, op};
  e.args = {std::move(a), std::move(b)};
  return make(std::move(e));
}

// ---- and, or

void flatten(const std::string& op, const ExprPtr& e, std::vector<ExprPtr>& out) {
  if (is_binary(e, op.c_str())) {
    for (const ExprPtr& a : e->args) flatten(op, a, out);
  } else {
    out.push_back(e);
  }
}

int reads(const ExprPtr& e) {
  int count = e->kind == Kind::read;
  for (const ExprPtr& a : e->args) count += reads(a);
  return count;
}

// `op` is and: `absorbing` is false; a part whose negation is a part too decides the whole.
ExprPtr connective(const std::string& op, const ExprPtr& a, const ExprPtr& b) {
  const bool absorbing = op == "or";
  std::vector<ExprPtr> parts, kept;
  flatten(op, a, parts);
  flatten(op, b, parts);
  for (const ExprPtr& p : parts) {
    if (is_number(p)) {
      if ((p->integer != 0) == absorbing) return boolean(absorbing);
      continue;
    }
    const ExprPtr negated = unary("not", p);
    bool repeated = false;
    for (const ExprPtr& k : kept) {
      if (equal(k, negated)) return boolean(absorbing);
      repeated = repeated || equal(k, p);
    }
    if (!repeated) kept.push_back(p);
  }
  if (kept.empty()) return boolean(!absorbing);
  std::stable_sort(kept.begin(), kept.end(), [](const ExprPtr& x, const ExprPtr& y) {
    const int rx = reads(x), ry = reads(y);
    return rx != ry ? rx < ry : print(x) < print(y);
  });
  ExprPtr out = kept[0];
  for (size_t n = 1; n < kept.size(); ++n) out = node(op, Type::boolean, out, kept[n]);
  return out;
}

// ---- integers

ExprPtr integer_binary(const std::string& op, const ExprPtr& a, const ExprPtr& b) {
  if (op == "+") return to_expr(add(linear(a), linear(b)));
  if (op == "-") return to_expr(add(linear(a), linear(b), -1));
  if (op == "*" && (is_number(a) || is_number(b))) {
    const ExprPtr& x = is_number(b) ? a : b;
    return to_expr(add({}, linear(x), (is_number(b) ? b : a)->integer));
  }
  if (op == "<" || op == "<=") return solved(add(linear(a), linear(b), -1), op == "<");
  if (is_bit_operator(op)) return bits_of(op, a, b);
  if (op == "==" || op == "!=") {
    if (equal(a, b)) return boolean(op == "==");
    if (const ExprPtr tested = bit_test(op == "==", a, b)) return tested;
    const bool swap = is_number(a) || (!is_number(b) && print(b) < print(a));
    return swap ? node(op, Type::boolean, b, a) : node(op, Type::boolean, a, b);
  }
  if ((op == "min" || op == "max") && (is_number(a) || is_number(b)))
    if (ExprPtr e = clamped_steps(op, is_number(b) ? a : b, (is_number(b) ? b : a)->integer))
      return e;
  if (op == "//" && is_number(b) && b->integer == 1) return a;
  if (op == "%" && is_number(b) && b->integer == 1) return integer(0);
  // Both round down, so a // -3 is -a // 3 and a % -3 is -(-a % 3): kernels divide by what is
  // positive.
  const bool negative =
      is_number(b) && b->integer < 0 && b->integer > std::numeric_limits<int64_t>::min();
  if (op == "//" && negative) return binary("//", unary("-", a), integer(-b->integer));
  if (op == "%" && negative) return unary("-", binary("%", unary("-", a), integer(-b->integer)));
  if ((op == "min" || op == "max" || op == "//") && equal(a, b)) return op == "//" ? integer(1) : a;
  if (op == "*" && print(b) < print(a)) return node(op, Type::integer, b, a);
  return nullptr;
}

// ---- reals

// x * c with the constant on the right, or null.
ExprPtr without_constant(const ExprPtr& e, double& factor) {
  if (is_minus(e) && e->args[0]->kind != Kind::infinity) {
    factor = -factor;
    const ExprPtr inner = without_constant(e->args[0], factor);
    return inner ? inner : e->args[0];
  }
  if (!is_binary(e, "*") || !is_number(e->args[1])) return nullptr;
  factor *= e->args[1]->value;
  return e->args[0];
}

ExprPtr times(const ExprPtr& x, double factor) {
  if (factor == 1) return x;
  if (factor == -1) {
    Expr e{Kind::unary, Type::real, "-"};
    e.args = {x};
    return make(std::move(e));
  }
  return node("*", Type::real, x, real(factor));
}

ExprPtr real_product(const ExprPtr& a, const ExprPtr& b) {
  double factor = 1;
  ExprPtr x = without_constant(a, factor), y = without_constant(b, factor);
  if (!x) x = a;
  if (!y) y = b;
  if (is_number(y)) return times(x, factor * y->value);
  if (is_number(x)) return times(y, factor * x->value);
  return times(node("*", Type::real, x, y), factor);
}

ExprPtr real_sum(const ExprPtr& a, const ExprPtr& b, double sign) {
  // a + (-x), a - x * -2: the sign of the second term goes into the operator.
  double factor = 1;
  if (const ExprPtr x = without_constant(b, factor); x && factor < 0)
    return real_sum(a, times(x, -factor), -sign);
  if (is_number(b) && sign < 0) return real_sum(a, real(-b->value), 1);
  if (is_number(b) && b->value == 0) return a;
  if (is_number(a) && a->value == 0) return sign > 0 ? b : unary("-", b);
  if (is_number(a) && !is_number(b)) return sign > 0 ? real_sum(b, a, 1) : nullptr;
  if (is_number(b) && is_binary(a, "+") && is_number(a->args[1]))
    return real_sum(a->args[0], real(a->args[1]->value + b->value), 1);
  factor = 1;
  if (const ExprPtr x = without_constant(a, factor); x && factor < 0 && sign > 0 && !is_number(b))
    return real_sum(b, a, 1);  // -x + b  is  b - x
  return node(sign > 0 ? "+" : "-", Type::real, a, b);
}

ExprPtr real_binary(const std::string& op, const ExprPtr& a, const ExprPtr& b) {
  if (op == "*") return real_product(a, b);
  if (op == "+") return real_sum(a, b, 1);
  if (op == "-") return real_sum(a, b, -1);
  if (op == "/" && is_number(b) && b->value != 0) return real_product(a, real(1 / b->value));
  if (op == "**" && is_number(b) && b->value == 1) return a;
  if (op == "**" && is_number(b) && b->value == 2) return real_product(a, a);
  return nullptr;
}

// where(c, 1, 0) * -1e9  ->  where(c, -1e9, 0): arithmetic on a mask of constants.
ExprPtr into_where(const std::string& op, const ExprPtr& a, const ExprPtr& b) {
  const auto chooses_constants = [](const ExprPtr& e) {
    return e->kind == Kind::where && constant(e->args[1]) && constant(e->args[2]);
  };
  if (chooses_constants(a) && constant(b))
    return where(a->args[0], binary(op, a->args[1], b), binary(op, a->args[2], b));
  if (chooses_constants(b) && constant(a))
    return where(b->args[0], binary(op, a, b->args[1]), binary(op, a, b->args[2]));
  return nullptr;
}

ExprPtr as_number(const ExprPtr& e) {
  return e->type == Type::boolean ? where(e, integer(1), integer(0)) : e;
}

}  // namespace

ExprPtr binary(const std::string& op, ExprPtr a, ExprPtr b) {
  if (op == ">") return binary("<", b, a);
  if (op == ">=") return binary("<=", b, a);
  if (op == "and" || op == "or") return connective(op, a, b);
  if (a->type == Type::boolean && b->type == Type::boolean) {
    if (op == "&") return connective("and", a, b);
    if (op == "|") return connective("or", a, b);
    if (op == "^") return binary("!=", a, b);
  }
  if (a->type == Type::boolean && b->type == Type::boolean && (op == "==" || op == "!=")) {
    const ExprPtr both = connective("and", a, b);
    const ExprPtr neither = connective("and", unary("not", a), unary("not", b));
    const ExprPtr same = connective("or", both, neither);
    return op == "==" ? same : unary("not", same);
  }
  a = as_number(a);
  b = as_number(b);
  if (op == "/" || a->type == Type::real || b->type == Type::real) {
    a = unary("float", a);
    b = unary("float", b);
  }
  const Type type = is_comparison(op) ? Type::boolean : a->type;
  const std::optional<double> x = constant(a), y = constant(b);
  const bool exact = type != Type::integer || !((op == "//" || op == "%") && y && *y == 0);
  if (x && y && exact) return of_type(type, fold_binary(op, *x, *y));
  if (ExprPtr e = into_where(op, a, b)) return e;
  if (ExprPtr e = a->type == Type::real ? real_binary(op, a, b) : integer_binary(op, a, b))
    return e;
  return node(op, type, std::move(a), std::move(b));
}

bool is_comparison(const ExprPtr& e) { return e->kind == Kind::binary && is_comparison(e->name); }

}  // namespace kw::spec
