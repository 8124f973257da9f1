#include "transfer/masks/key_bounds.h"

#include "operator/expr/linear.h"
#include "transfer/editing/terms.h"
#include "transfer/masks/predicate_intervals.h"

namespace kw::transfer {
namespace {

using spec::binary;
using spec::ExprPtr;
using spec::integer;
using spec::Kind;
using spec::Linear;

bool has_key(const ExprPtr& e) { return spec::mentions(e, Kind::index, "j"); }
bool has_row(const ExprPtr& e) { return spec::mentions(e, Kind::index, "i"); }

// The one atom of a sum that mentions j, taken out of it; nothing if there are several or its
// factor is not +-1.
std::optional<Linear::Term> take_key_term(Linear& sum) {
  std::optional<Linear::Term> found;
  for (const Linear::Term& t : sum.terms) {
    if (!has_key(t.atom)) continue;
    if (found || (t.factor != 1 && t.factor != -1)) return std::nullopt;
    found = t;
  }
  if (found) sum = spec::add(sum, spec::linear(found->atom), -found->factor);
  return found;
}

// x < bound (upper) or x >= bound (lower), x an atom that mentions j: as a bound on j itself.
std::optional<KeyBounds> bound_on(const ExprPtr& x, const ExprPtr& bound, bool upper) {
  if (x->kind == Kind::index) return upper ? KeyBounds{nullptr, bound} : KeyBounds{bound, nullptr};
  // y // c < bound is y < bound * c, and y // c >= bound is y >= bound * c.
  if (is(x, "//") && is_positive_number(x->args[1])) {
    Linear rest = spec::linear(x->args[0]);
    const std::optional<Linear::Term> key = take_key_term(rest);
    if (!key || key->factor != 1) return std::nullopt;
    return bound_on(key->atom, binary("-", binary("*", bound, x->args[1]), spec::to_expr(rest)),
                    upper);
  }
  return std::nullopt;
}

// A comparison as a bound on j; nothing if it is not one.
std::optional<KeyBounds> bound_of_comparison(const ExprPtr& e) {
  const bool strict = e->name == "<";
  if (e->args[0]->type != spec::Type::integer || e->args[1]->type != spec::Type::integer)
    return std::nullopt;
  Linear rest = spec::add(spec::linear(e->args[0]), spec::linear(e->args[1]), -1);
  const std::optional<Linear::Term> key = take_key_term(rest);
  if (!key) return std::nullopt;
  if (key->factor == 1) {  // x + rest < 0 is x < -rest
    Linear bound = spec::add({}, rest, -1);
    if (!strict) ++bound.constant;
    return bound_on(key->atom, spec::to_expr(bound), true);
  }
  if (strict) ++rest.constant;  // rest < x is x >= rest + 1
  return bound_on(key->atom, spec::to_expr(rest), false);
}

ExprPtr min_or_either(const ExprPtr& a, const ExprPtr& b) {
  return !a ? b : !b ? a : smaller(a, b);
}
ExprPtr max_or_either(const ExprPtr& a, const ExprPtr& b) { return !a ? b : !b ? a : larger(a, b); }

std::optional<KeyBounds> either(const KeyBounds& a, const KeyBounds& b) {
  if ((!a.lower && !a.upper) || (!b.lower && !b.upper)) return KeyBounds{};
  if (!a.lower && !b.lower) return KeyBounds{nullptr, larger(a.upper, b.upper)};
  if (!a.upper && !b.upper) return KeyBounds{smaller(a.lower, b.lower), nullptr};
  // One end in common: one range, whichever of them is empty.
  if (a.lower && b.lower && spec::equal(a.lower, b.lower))
    return KeyBounds{a.lower, a.upper && b.upper ? larger(a.upper, b.upper) : nullptr};
  if (a.upper && b.upper && spec::equal(a.upper, b.upper))
    return KeyBounds{a.lower && b.lower ? smaller(a.lower, b.lower) : nullptr, a.upper};
  // Up to U, or from L to V: one range if L <= U (and from V down likewise), even if L..V is empty.
  if (!a.lower && b.upper && at_most(b.lower, a.upper))
    return KeyBounds{nullptr, larger(a.upper, b.upper)};
  if (!a.upper && b.lower && at_most(a.lower, b.upper))
    return KeyBounds{smaller(a.lower, b.lower), nullptr};
  return std::nullopt;
}

// The value of e with i at that end of the rows at which e is largest (up) or smallest.
ExprPtr extreme(const ExprPtr& e, const Rows& rows, bool up);

ExprPtr extreme_of_sum(const Linear& sum, const Rows& rows, bool up) {
  Linear out;
  out.constant = sum.constant;
  for (const auto& [atom, factor] : sum.terms) {
    const ExprPtr bound = extreme(atom, rows, factor > 0 ? up : !up);
    if (!bound) return nullptr;
    out = spec::add(out, spec::linear(bound), factor);
  }
  return spec::to_expr(out);
}

// A condition without i that holds if e does for some row; null where none is known.
ExprPtr possible(const ExprPtr& e, const Rows& rows) {
  if (!has_row(e)) return e;
  if (is(e, "and") || is(e, "or")) {
    const ExprPtr a = possible(e->args[0], rows), b = possible(e->args[1], rows);
    if (is(e, "or")) return a && b ? binary("or", a, b) : nullptr;
    return a && b ? binary("and", a, b) : a ? a : b;
  }
  if ((!is(e, "<") && !is(e, "<=")) || e->args[0]->type != spec::Type::integer ||
      e->args[1]->type != spec::Type::integer)
    return nullptr;
  const Linear rest = spec::add(spec::linear(e->args[0]), spec::linear(e->args[1]), -1);
  const ExprPtr least = extreme_of_sum(rest, rows, false);
  return least ? binary(e->name, least, integer(0)) : nullptr;
}

// where(condition, a, b) of the bounds a and b over the rows where it holds and where it does not.
ExprPtr extreme_of_choice(const ExprPtr& condition, const ExprPtr& a, const ExprPtr& b,
                          const Rows& rows, bool up) {
  if (!has_row(condition)) return spec::where(condition, a, b);
  const ExprPtr holds = possible(condition, rows),
                fails = possible(spec::unary("not", condition), rows);
  // The better arm counts where some row takes it, and else the other alone.
  if (holds && at_most(up ? b : a, up ? a : b)) return spec::where(holds, a, b);
  if (fails && at_most(up ? a : b, up ? b : a)) return spec::where(fails, b, a);
  return up ? larger(a, b) : smaller(a, b);
}

ExprPtr extreme(const ExprPtr& e, const Rows& rows, bool up) {
  if (!has_row(e)) return e;
  if (e->kind == Kind::index) return up ? rows.last : rows.first;
  if (e->type != spec::Type::integer) return nullptr;
  if (e->kind == Kind::where) {
    const ExprPtr a = extreme(e->args[1], rows, up), b = extreme(e->args[2], rows, up);
    return a && b ? extreme_of_choice(e->args[0], a, b, rows, up) : nullptr;
  }
  if (is(e, "min") || is(e, "max")) {
    const ExprPtr a = extreme(e->args[0], rows, up), b = extreme(e->args[1], rows, up);
    return a && b ? binary(e->name, a, b) : nullptr;
  }
  if (is(e, "//") && is_positive_number(e->args[1])) {
    const ExprPtr a = extreme(e->args[0], rows, up);
    return a ? binary("//", a, e->args[1]) : nullptr;
  }
  if (is(e, "%") && is_positive_number(e->args[1]))
    return integer(up ? e->args[1]->integer - 1 : 0);
  const Linear sum = spec::linear(e);
  if (sum.terms.size() == 1 && sum.terms[0].atom == e) return nullptr;  // an atom not listed above
  if (sum.terms.size() == 1 && sum.constant == 0 && sum.terms[0].factor == 1 &&
      spec::equal(sum.terms[0].atom, e))
    return nullptr;
  return extreme_of_sum(sum, rows, up);
}

}  // namespace

ExprPtr as_comparisons(const ExprPtr& e) {
  if (!has_key(e) || e->kind != Kind::binary) return e;
  if (e->name == "==" && e->args[0]->type == spec::Type::boolean) {
    const auto fails = [](const ExprPtr& x) { return spec::unary("not", x); };
    return binary("or", binary("and", e->args[0], e->args[1]),
                  binary("and", fails(e->args[0]), fails(e->args[1])));
  }
  if (e->name == "==" && e->args[0]->type == spec::Type::integer &&
      e->args[1]->type == spec::Type::integer)
    return binary("and", binary("<=", e->args[0], e->args[1]),
                  binary("<=", e->args[1], e->args[0]));
  if (e->name != "<" && e->name != "<=") return e;
  Linear rest = spec::add(spec::linear(e->args[0]), spec::linear(e->args[1]), -1);
  const std::optional<Linear::Term> key = take_key_term(rest);
  if (!key || !is(key->atom, "abs")) return e;
  const ExprPtr x = key->atom->args[0], minus_x = spec::unary("-", x);
  const ExprPtr r = spec::to_expr(rest), zero = integer(0);
  if (key->factor == 1)  // |x| + r < 0
    return binary("and", binary(e->name, binary("+", x, r), zero),
                  binary(e->name, binary("+", minus_x, r), zero));
  return binary("or", binary(e->name, binary("-", r, x), zero),  // r - |x| < 0
                binary(e->name, binary("-", r, minus_x), zero));
}

std::optional<KeyBounds> key_bounds(const ExprPtr& keep, const ExprPtr& keys) {
  if (!keep) return KeyBounds{};
  if (keep->kind == Kind::number)
    return keep->integer ? KeyBounds{} : KeyBounds{nullptr, integer(0)};
  if (!has_key(keep)) return KeyBounds{nullptr, spec::where(keep, keys, integer(0))};
  const ExprPtr e = as_comparisons(keep);
  if (is(e, "and") || is(e, "or")) {
    const auto a = key_bounds(e->args[0], keys), b = key_bounds(e->args[1], keys);
    if (!a || !b) return std::nullopt;
    if (is(e, "or")) return union_of(*a, *b);
    return KeyBounds{max_or_either(a->lower, b->lower), min_or_either(a->upper, b->upper)};
  }
  if (is(e, "<") || is(e, "<=")) return bound_of_comparison(e);
  return std::nullopt;
}

std::optional<KeyBounds> union_of(const KeyBounds& a, const KeyBounds& b) {
  if (const auto one = either(a, b)) return one;
  return either(b, a);
}

ExprPtr highest(const ExprPtr& e, const Rows& rows) { return extreme(e, rows, true); }
ExprPtr lowest(const ExprPtr& e, const Rows& rows) { return extreme(e, rows, false); }

bool at_most(const ExprPtr& a, const ExprPtr& b) {
  if (spec::equal(a, b)) return true;
  if (is(a, "min") && (at_most(a->args[0], b) || at_most(a->args[1], b))) return true;
  if (is(b, "max") && (at_most(a, b->args[0]) || at_most(a, b->args[1]))) return true;
  if (is(a, "max") && at_most(a->args[0], b) && at_most(a->args[1], b)) return true;
  if (is(b, "min") && at_most(a, b->args[0]) && at_most(a, b->args[1])) return true;
  return range(binary("<=", a, b), {}).is(1);
}

ExprPtr smaller(const ExprPtr& a, const ExprPtr& b) {
  return at_most(a, b) ? a : at_most(b, a) ? b : binary("min", a, b);
}
ExprPtr larger(const ExprPtr& a, const ExprPtr& b) {
  return at_most(a, b) ? b : at_most(b, a) ? a : binary("max", a, b);
}

}  // namespace kw::transfer
