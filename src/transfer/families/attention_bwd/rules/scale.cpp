// The factor of s in the scores.
//
//   scale: f32 = rsqrt(D)   ->   scale: f32 = 0.125
//
// When     score = c * s with c > 0 the same for all scores. It stands in the exponent's scale, in
//          the log-sum's unit and in the gradients of q and k alike.
// Effect   one rounding of c to f32. 1 / sqrt(D) keeps the source's own text.
#include <fmt/format.h>

#include <cmath>

#include "operator/expr/fold.h"
#include "transfer/families/attention/score.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using spec::Kind;

bool is_scaled_product(const Score& parts) {
  return parts.core && parts.core->kind == Kind::score && !parts.bias;
}

}  // namespace

bool rule_scale(Edit& edit) {
  const Score parts = take_apart(edit.term.score);
  const auto c = parts.factor ? spec::constant(parts.factor) : std::nullopt;
  if (!is_scaled_product(parts) || !c || *c <= 0)
    return edit.refuse("transfer.score", edit.place(edit.term.score),
                       fmt::format("the score is {}, and no rule writes its gradient into this "
                                   "kernel",
                                   print(edit.term.score)),
                       "supported is q . k times a positive number");
  if (std::fabs(*c * std::sqrt(double(edit.form.D.constant)) - 1) < 1e-15) return true;
  const tl::ExprPtr value = tl::parse_expr(fmt::format("{:.17g}", *c), edit.diagnostics);
  if (!value) return false;
  for (tl::Stmt& s : edit.program.find(tl::Op::args)->body)
    for (tl::Item& d : s.names())
      if (d.name == "scale") d.expr = value;
  return true;
}

}  // namespace kw::transfer::bwd
