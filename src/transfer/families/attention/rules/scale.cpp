// The factor of s goes into the exponent's scale.
//
//   scale: f32 = rsqrt(D) * log2e   ->   scale: f32 = 0.125 * log2e
//                                   ->   scale: f32 = temperature * log2e
//
// When     score = c * core + bias with c > 0 the same for all scores: a constant, or of scalar
//          arguments and sizes (then c > 10^-12 is a condition of the launch unless c > 0 is
//          provable). A negative constant turns the core's sign; a c that depends on the head or
//          the block becomes part of the core (rule_score), and so does what is not linear in s. c
//          > 0 matters because `online_max` takes the maximum of the core.
// Effect   one rounding of c * log2e to f32. 1 / sqrt(D) keeps the source's own text.
#include "transfer/families/attention/scale.h"

#include <fmt/format.h>

#include "operator/expr/fold.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/masks/predicate_intervals.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

// Makes the factor positive, or part of the core.
bool settle_factor(Edit& edit) {
  Score& p = edit.parts;
  const std::optional<double> c = spec::constant(p.factor);
  if (!p.core || (c && *c == 0))
    return edit.refuse("transfer.score", edit.place(edit.term.score),
                       fmt::format("the score {} does not depend on q and k", print(edit.score)),
                       "supported are scores with a factor other than 0");
  if (c && *c < 0) {
    p.core = spec::unary("-", p.core);
    p.factor = spec::real(-*c);
  } else if (!same_for_all_scores(p.factor)) {
    p.core = spec::binary("*", p.core, p.factor);
    p.factor = spec::real(1);
  } else if (!c && range(p.factor, {}).low <= 0) {
    const std::optional<tl::ExprPtr> text = spell(p.factor, {}, edit.diagnostics);
    return text && edit.condition(tl::print(*text) + " > 1.0e-12",
                                  "a running maximum needs a positive factor of the scores, and "
                                  "what is added to them is divided by it");
  }
  return true;
}

}  // namespace

bool rule_scale(Edit& edit) {
  if (edit.normaliser != spec::Normaliser::softmax) return true;  // rule_normaliser's
  edit.parts = take_apart(edit.score);
  if (!edit.parts.core) edit.parts.factor = spec::real(0);
  return settle_factor(edit) && set_scale(edit, edit.parts.factor, true);
}

}  // namespace kw::transfer
