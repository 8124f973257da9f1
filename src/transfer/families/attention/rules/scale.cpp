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

#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {

bool rule_scale(Edit& edit) {
  if (edit.normaliser != spec::Normaliser::softmax) return true;  // rule_normaliser's
  edit.parts = take_apart(edit.score);
  if (!edit.parts.core) edit.parts.factor = spec::real(0);
  return settle_factor(edit, edit.score, edit.parts) &&
         set_scale(edit, edit.facts.scale, edit.facts.dim, edit.parts.factor, true);
}

}  // namespace kw::transfer
