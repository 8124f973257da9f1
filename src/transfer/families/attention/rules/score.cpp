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
#include "transfer/editing/bias.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/families/attention/score_map.h"

namespace kw::transfer {
bool rule_score(Edit& edit) {
  if (edit.normaliser != spec::Normaliser::softmax) return true;  // rule_normaliser's
  const Score& parts = edit.parts;
  if (parts.core->kind == Kind::score && !parts.bias) return true;
  ExprPtr value = hoist_parts(edit, parts.core, "weight");
  if (value && parts.bias) {
    if (!declare_unscale(edit)) return false;
    const ExprPtr unit =
        edit.unscale.empty() ? nullptr : spec::leaf(Kind::argument, Type::real, edit.unscale);
    value = with_bias(edit, value, parts.bias, unit);
  }
  return value && write_score_map(edit, value);
}

}  // namespace kw::transfer
