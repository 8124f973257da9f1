// The factor of s in the scores.
//
//   scale: f32 = rsqrt(D)   ->   scale: f32 = 0.125
//                           ->   scale: f32 = temperature
//
// When     score = c * core + bias, as the forward rule takes it apart (attention/rules/scale.cpp).
//          The factor stands in the exponent's scale, in the log-sum's unit and in the gradients of
//          q and k alike.
//          In f16 one above 1 stays in the core: gradients of scores are rounded before they meet
//          it, and f16 has fewer digits below 2^-14.
// Effect   one rounding of c to f32. 1 / sqrt(D) keeps the source's own text.
#include "transfer/families/attention/scale.h"

#include <cmath>

#include "operator/expr/fold.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {

bool rule_scale(Edit& edit) {
  if (!spec::has_softmax(edit.form)) {  // no exponential takes it: gradients alone
    const auto slope = slope_of(edit.score);
    edit.parts = {spec::real(slope ? slope->constant : 1), edit.score, nullptr};
    return set_scale(edit, "scale", "D", edit.parts.factor, false);
  }
  edit.parts = take_apart(edit.score);
  if (!edit.parts.core) edit.parts.factor = spec::real(0);
  if (const auto c = spec::constant(edit.parts.factor);
      c && std::fabs(*c) > 1 && edit.form.dtype == Dtype::f16) {
    edit.parts.core = spec::binary("*", edit.parts.factor, edit.parts.core);
    edit.parts.factor = spec::real(1);
  }
  return settle_factor(edit, edit.score, edit.parts) &&
         set_scale(edit, "scale", "D", edit.parts.factor, false);
}

}  // namespace kw::transfer::bwd
