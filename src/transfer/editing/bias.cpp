#include "transfer/editing/bias.h"

#include <algorithm>

#include "operator/expr/fold.h"
#include "transfer/editing/terms.h"
#include "transfer/editing/write_map.h"
#include "transfer/masks/coordinates.h"

namespace kw::transfer {

using spec::ExprPtr;
using spec::Kind;
using spec::Type;

namespace {

// A node as it stands: the order of factors is chosen here.
ExprPtr node(const char* op, const ExprPtr& a, const ExprPtr& b) {
  spec::Expr e{Kind::binary, Type::real, op};
  e.args = {a, b};
  return spec::make(std::move(e));
}

ExprPtr product(const ExprPtr& a, const ExprPtr& b) { return !a ? b : !b ? a : node("*", a, b); }

struct Addend {
  bool negative;
  ExprPtr value;
};

void addends(const ExprPtr& e, bool negative, std::vector<Addend>& out) {
  if (e->type == Type::real && e->kind == Kind::binary && (is(e, "+") || is(e, "-"))) {
    addends(e->args[0], negative, out);
    addends(e->args[1], negative != is(e, "-"), out);
  } else if (e->type == Type::real && e->kind == Kind::unary && is(e, "-")) {
    addends(e->args[0], !negative, out);
  } else {
    out.push_back({negative, e});
  }
}

// The factors of a product, in two groups.
void factors(const ExprPtr& e, ExprPtr& of_block, ExprPtr& of_element) {
  if (e->type == Type::real && e->kind == Kind::binary && is(e, "*")) {
    factors(e->args[0], of_block, of_element);
    factors(e->args[1], of_block, of_element);
  } else if (has_coordinate(e)) {
    of_element = product(of_element, e);
  } else {
    of_block = product(of_block, e);
  }
}

// s + (a + b), and not s + a + b.
bool adds_apart(const ExprPtr& e) {
  if (!e || e->type != Type::real) return false;
  if (e->kind == Kind::unary && is(e, "-")) return adds_apart(e->args[0]);
  if (e->kind != Kind::binary || !(is(e, "+") || is(e, "-"))) return false;
  return !spec::mentions(e, Kind::score) || adds_apart(e->args[0]) || adds_apart(e->args[1]);
}

}  // namespace

// As a sum of addends, each (what depends on the block) * (what depends on the element).
// Of both signs, or where the function adds them before it adds the score, they are added as it
// does, before the unit: large ones may leave a small difference, of which another order keeps
// less, and so do products with the unit.
ExprPtr with_bias(Editing& edit, ExprPtr scores, const ExprPtr& bias, const ExprPtr& unit) {
  std::vector<Addend> parts;
  addends(bias, false, parts);
  const auto differs = [&](const Addend& part) { return part.negative != parts[0].negative; };
  const auto& terms = edit.form.terms;
  const bool apart = std::any_of(terms.begin(), terms.end(),
                                 [](const spec::Term& t) { return adds_apart(t.score); });
  if (std::any_of(parts.begin(), parts.end(), differs) || (parts.size() > 1 && apart)) {
    const ExprPtr hoisted = hoist_parts(edit, bias, "slope");
    return hoisted ? node("+", scores, product(unit, hoisted)) : nullptr;
  }
  for (const Addend& part : parts) {
    ExprPtr of_block, of_element;
    factors(part.value, of_block, of_element);
    const ExprPtr hoisted = hoist_parts(edit, product(product(of_block, unit), of_element),
                                        of_element ? "slope" : "bias");
    if (!hoisted) return nullptr;
    scores = node(part.negative ? "-" : "+", scores, hoisted);
  }
  return scores;
}

}  // namespace kw::transfer
