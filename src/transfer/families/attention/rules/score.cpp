// What the score is beyond a multiple of s: written before the mask, in every block.
//
//   if partial: ...   ->   map s[i, j] = tanh(s[i, j] * 0.02)
//                        if partial: ...
//   if partial: ...   ->   map_real s[i, j] from (i0, n * BN) = s[i, j] + slope * (j - i)
//                        if partial: ...
//   with `unscale: f32 = log2e / scale` and `let slope = slopes[c.h] * unscale`
//
// When     score = c * core + bias (rule_scale took c), with a core other than s or a bias. The
//          tile becomes core + bias / c, so that the exponent scale * s is the score times log2e.
//          Factors that depend on the block alone are computed once for each block.
// Effect   bias / c is one rounding more than bias; `unscale` is 1 / c rounded twice. tanh and the
//          other functions are the device's approximations (tanh: 2^-11 relative). Coordinates are
//          reals, exact while M and N are at most 2^24 (a condition of the launch); where they
//          stand in // or % they are integers (map_at).
#include <fmt/format.h>

#include "operator/expr/fold.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/terms.h"
#include "transfer/write_map.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;
using spec::Type;

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

// bias / c as a sum of addends, each (what depends on the block) * (what depends on the element).
// Of both signs, they are added as the function adds them, before 1 / c: large ones may leave a
// small difference, of which another order keeps less, and so do products with 1 / c.
ExprPtr with_bias(Edit& edit, ExprPtr scores) {
  const ExprPtr unscale =
      edit.unscale.empty() ? nullptr : spec::leaf(Kind::argument, Type::real, edit.unscale);
  std::vector<Addend> parts;
  addends(edit.parts.bias, false, parts);
  const auto differs = [&](const Addend& part) { return part.negative != parts[0].negative; };
  if (std::any_of(parts.begin(), parts.end(), differs)) {
    const ExprPtr bias = hoist_parts(edit, edit.parts.bias, "slope");
    return bias ? node("+", scores, product(unscale, bias)) : nullptr;
  }
  for (const Addend& part : parts) {
    ExprPtr of_block, of_element;
    factors(part.value, of_block, of_element);
    const ExprPtr hoisted = hoist_parts(edit, product(product(of_block, unscale), of_element),
                                        of_element ? "slope" : "bias");
    if (!hoisted) return nullptr;
    scores = node(part.negative ? "-" : "+", scores, hoisted);
  }
  return scores;
}

}  // namespace

bool rule_score(Edit& edit) {
  if (edit.normaliser != spec::Normaliser::softmax) return true;  // rule_normaliser's
  if (edit.parts.core->kind == Kind::score && !edit.parts.bias) return true;
  ExprPtr value = hoist_parts(edit, edit.parts.core, "weight");
  if (value && edit.parts.bias) value = declare_unscale(edit) ? with_bias(edit, value) : nullptr;
  return value && write_score_map(edit, value);
}

}  // namespace kw::transfer
