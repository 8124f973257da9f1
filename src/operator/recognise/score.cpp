// The score map and the keep predicate, out of one expression.
#include <cmath>

#include "operator/expr/fold.h"
#include "operator/recognise/recognise.h"

namespace kw::spec {
namespace {

// At or below this, a number that is added to a score or put in its place means "dropped": exp of
// it is 0 beside any score that a bf16 or f16 product can sensibly have.
constexpr double kDropped = -1e4;

ExprPtr both(const ExprPtr& a, const ExprPtr& b) { return binary("and", a, b); }

bool is_real(const ExprPtr& e) { return e->type == Type::real; }

Score of_where(const ExprPtr& e, Score (*split)(const ExprPtr&)) {
  const ExprPtr condition = e->args[0];
  Score yes = split(e->args[1]), no = split(e->args[2]);
  Score out;
  out.finite = yes.finite || no.finite;
  out.number = std::max(yes.number, no.number);
  out.added = yes.added || no.added;
  out.keep = where(condition, yes.keep, no.keep);
  if (out.keep->kind == Kind::where)  // booleans: (c and yes) or (not c and no)
    out.keep = binary("or", both(condition, yes.keep), both(unary("not", condition), no.keep));
  // Where nothing is kept, any value will do: take the other branch's.
  const auto is_false = [](const ExprPtr& k) { return k->kind == Kind::number && !k->integer; };
  out.value = is_false(no.keep)    ? yes.value
              : is_false(yes.keep) ? no.value
                                   : where(condition, yes.value, no.value);
  return out;
}

// Is this function 0 at x?
bool vanishes(const ExprPtr& e, double x) {
  return e->kind == Kind::unary && fold_unary(e->name, x) == 0;
}

bool is_zero(const ExprPtr& e) {
  const std::optional<double> value = constant(e);
  return value && *value == 0;
}

// Of a product, what either drops; of a quotient, what is divided.
Score of_product(const ExprPtr& e) {
  const Score a = split_weight(e->args[0]);
  if (e->name != "*") return {binary(e->name, a.value, e->args[1]), a.keep};
  const Score b = split_weight(e->args[1]);
  return {binary("*", a.value, b.value), both(a.keep, b.keep)};
}

}  // namespace

Score split_score(const ExprPtr& e) {
  Score out{e, boolean(true)};
  if (const std::optional<double> value = constant(e); value && is_real(e)) {
    if (*value <= kDropped) {
      out.value = real(0);
      out.keep = boolean(false);
      out.finite = std::isfinite(*value);
      out.number = *value;
    }
    return out;
  }
  if (e->kind == Kind::where && is_real(e)) return of_where(e, split_score);
  if (e->kind == Kind::binary && (e->name == "+" || e->name == "-") && is_real(e)) {
    const Score a = split_score(e->args[0]);
    if (e->name == "-") {
      out.value = binary("-", a.value, e->args[1]);
      out.keep = a.keep;
      out.finite = a.finite;
      out.number = a.number;
      out.added = a.finite || a.added;
      return out;
    }
    const Score b = split_score(e->args[1]);
    out.value = binary("+", a.value, b.value);
    out.keep = both(a.keep, b.keep);
    out.finite = a.finite || b.finite;
    out.number = std::max(a.number, b.number);
    out.added = out.finite || a.added || b.added;
    return out;
  }
  // x * c with c > 0 drops what x drops, unless the number that drops it is then a score like
  // others.
  if (e->kind == Kind::binary && e->name == "*" && e->args[1]->kind == Kind::number &&
      e->args[1]->value > 0) {
    Score x = split_score(e->args[0]);
    x.value = binary("*", x.value, e->args[1]);
    x.number *= e->args[1]->value;
    if (!x.finite || x.number <= kDropped) return x;
  }
  return out;
}

Score split_weight(const ExprPtr& e) {
  if (is_zero(e)) return {real(0), boolean(false)};
  // A factor of 1 or 0, where(keep, 1, 0), leaves 1.
  if (e->kind == Kind::where) return of_where(e, split_weight);
  const bool power = e->kind == Kind::binary && e->name == "**" && constant(e->args[1]) &&
                     *constant(e->args[1]) > 0;
  if (power || (e->kind == Kind::binary && (e->name == "*" || e->name == "/")))
    return of_product(e);
  if (vanishes(e, -HUGE_VAL) || vanishes(e, 0)) {
    Score x{e->args[0], boolean(true)};
    if (vanishes(e, -HUGE_VAL)) x = split_score(e->args[0]);
    if (vanishes(e, 0) && x.keep->kind == Kind::number) x = split_weight(e->args[0]);
    return {unary(e->name, x.value), x.keep};
  }
  return {e, boolean(true)};
}

ExprPtr simplify_bounds(const ExprPtr& e, const std::map<std::string, ExprPtr>& extents) {
  const auto extent_of = [&](const ExprPtr& x) -> ExprPtr {
    const auto found = x->kind == Kind::index ? extents.find(x->name) : extents.end();
    return found == extents.end() ? nullptr : found->second;
  };
  return rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    if (x->kind != Kind::binary || (x->name != "<" && x->name != "<=")) return nullptr;
    const ExprPtr &a = x->args[0], &b = x->args[1];
    const bool strict = x->name == "<";
    if (const ExprPtr extent = extent_of(a)) {  // a < c
      if (strict && equal(b, extent)) return boolean(true);
      if (!strict && equal(binary("+", b, integer(1)), extent)) return boolean(true);
      if (b->kind == Kind::number && (strict ? b->integer <= 0 : b->integer < 0))
        return boolean(false);
      if (b->kind == Kind::number && extent->kind == Kind::number &&
          (strict ? b->integer >= extent->integer : b->integer + 1 >= extent->integer))
        return boolean(true);
    }
    if (extent_of(b) && a->kind == Kind::number &&
        (strict ? a->integer < 0 : a->integer <= 0))  // c <= b
      return boolean(true);
    return nullptr;
  });
}

}  // namespace kw::spec
