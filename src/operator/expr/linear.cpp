#include "operator/expr/linear.h"

#include <algorithm>
#include <string_view>

namespace kw::spec {
namespace {

// Where an atom stands in a sum: indices first, in the order in which a mask is read.
int rank(const ExprPtr& atom) {
  constexpr std::string_view kOrder = "jihbd";
  if (atom->kind == Kind::size) return 9;
  if (atom->kind != Kind::index) return 7;
  const size_t at = atom->name.size() == 1 ? kOrder.find(atom->name) : std::string_view::npos;
  return at == std::string_view::npos ? 6 : static_cast<int>(at);
}

void add_term(Linear& sum, const ExprPtr& atom, int64_t factor) {
  for (size_t n = 0; n < sum.terms.size(); ++n) {
    if (!equal(sum.terms[n].atom, atom)) continue;
    sum.terms[n].factor += factor;
    if (sum.terms[n].factor == 0) sum.terms.erase(sum.terms.begin() + n);
    return;
  }
  if (factor != 0) sum.terms.push_back({atom, factor});
}

void collect(Linear& sum, const ExprPtr& e, int64_t factor) {
  if (is_number(e)) {
    sum.constant += factor * e->integer;
  } else if (is_binary(e, "+") || is_binary(e, "-")) {
    collect(sum, e->args[0], factor);
    collect(sum, e->args[1], e->name == "+" ? factor : -factor);
  } else if (e->kind == Kind::unary && e->name == "-") {
    collect(sum, e->args[0], -factor);
  } else if (is_binary(e, "*") && is_number(e->args[1])) {
    collect(sum, e->args[0], factor * e->args[1]->integer);
  } else if (is_binary(e, "*") && is_number(e->args[0])) {
    collect(sum, e->args[1], factor * e->args[0]->integer);
  } else {
    add_term(sum, e, factor);
  }
}

// x // c * (k c) + x % c * k  ->  x * k
void join_quotients(Linear& sum) {
  for (size_t m = 0; m < sum.terms.size(); ++m) {
    const Linear::Term rest = sum.terms[m];
    if (!is_binary(rest.atom, "%")) continue;
    const ExprPtr x = rest.atom->args[0], c = rest.atom->args[1];
    for (size_t q = 0; q < sum.terms.size(); ++q) {
      const Linear::Term whole = sum.terms[q];
      if (!is_binary(whole.atom, "//") || !equal(whole.atom->args[0], x) ||
          !equal(whole.atom->args[1], c) || !is_number(c) ||
          whole.factor != rest.factor * c->integer)
        continue;
      sum.terms.erase(sum.terms.begin() + std::max(m, q));
      sum.terms.erase(sum.terms.begin() + std::min(m, q));
      collect(sum, x, rest.factor);
      return join_quotients(sum);
    }
  }
}

void order(Linear& sum) {
  std::stable_sort(sum.terms.begin(), sum.terms.end(), [](const auto& a, const auto& b) {
    const int ra = rank(a.atom), rb = rank(b.atom);
    return ra != rb ? ra < rb : print(a.atom) < print(b.atom);
  });
}

ExprPtr node(const char* op, Type type, ExprPtr a, ExprPtr b) {
  Expr e{Kind::binary, type, op};
  e.args = {std::move(a), std::move(b)};
  return std::make_shared<const Expr>(std::move(e));
}

ExprPtr scaled(const ExprPtr& atom, int64_t factor) {
  return factor == 1 ? atom : node("*", Type::integer, atom, integer(factor));
}

}  // namespace

Linear linear(const ExprPtr& e) {
  Linear sum;
  collect(sum, e, 1);
  join_quotients(sum);
  order(sum);
  return sum;
}

Linear add(const Linear& a, const Linear& b, int64_t factor_of_b) {
  Linear sum = a;
  sum.constant += factor_of_b * b.constant;
  for (const Linear::Term& t : b.terms) add_term(sum, t.atom, factor_of_b * t.factor);
  join_quotients(sum);
  order(sum);
  return sum;
}

ExprPtr to_expr(const Linear& sum) {
  ExprPtr out;
  for (const bool positive : {true, false}) {
    for (const Linear::Term& t : sum.terms) {
      if ((t.factor > 0) != positive) continue;
      if (out)
        out = node(positive ? "+" : "-", Type::integer, out, scaled(t.atom, std::abs(t.factor)));
      else if (positive)
        out = scaled(t.atom, t.factor);
      else if (sum.constant > 0)  // 3 - i rather than -i + 3
        out = node("-", Type::integer, integer(sum.constant), scaled(t.atom, -t.factor));
      else
        out = node("*", Type::integer, t.atom, integer(t.factor));
    }
  }
  if (!out) return integer(sum.constant);
  const bool leads = sum.constant > 0 && std::none_of(sum.terms.begin(), sum.terms.end(),
                                                      [](const auto& t) { return t.factor > 0; });
  if (sum.constant == 0 || leads) return out;
  return node(sum.constant > 0 ? "+" : "-", Type::integer, out, integer(std::abs(sum.constant)));
}

ExprPtr solved(const Linear& difference, bool strict) {
  if (difference.is_constant())
    return boolean(strict ? difference.constant < 0 : difference.constant <= 0);
  // x + rest <= 0  is  x <= -rest;   -x + rest <= 0  is  rest <= x.
  const int64_t factor = difference.terms.front().factor;
  Linear bound;  // of a first term with factor +-1; otherwise all positive terms stay on the left
  if (factor != 1 && factor != -1) {
    Linear left, right;
    for (const Linear::Term& t : difference.terms)
      t.factor > 0 ? left.terms.push_back(t) : right.terms.push_back({t.atom, -t.factor});
    right.constant = -difference.constant;
    return node(strict ? "<" : "<=", Type::boolean, to_expr(left), to_expr(right));
  }
  const ExprPtr x = difference.terms.front().atom;
  Linear rest = difference;
  rest.terms.erase(rest.terms.begin());
  const bool upper = factor == 1;  // x is bounded from above
  bound = upper ? add({}, rest, -1) : rest;
  // Integers: x < e + 1 is x <= e. Take the spelling without a constant where there is one, then
  // `<=` above and `<` below; a bare number is always written with `<`.
  const int64_t step = upper ? 1 : -1;  // x <= e  is  x < e + step;  e <= x  is  e + step < x
  if (!strict) {
    bound.constant += step;
    strict = true;
  }
  const bool drop_constant = bound.constant == step && !bound.terms.empty();
  if (drop_constant || (upper && bound.constant != 0 && !bound.terms.empty())) {
    bound.constant -= step;
    strict = false;
  }
  const char* op = strict ? "<" : "<=";
  return upper ? node(op, Type::boolean, x, to_expr(bound))
               : node(op, Type::boolean, to_expr(bound), x);
}

}  // namespace kw::spec
