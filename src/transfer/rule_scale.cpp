// The factor of s goes into the exponent's scale.
//
//   scale: f32 = rsqrt(D) * log2e   ->   scale: f32 = 0.125 * log2e
//                                   ->   scale: f32 = temperature * log2e
//
// When     score = c * core + bias with c > 0 the same for all scores: a constant, or of scalar
//          arguments and sizes (then c > 0 is a condition of the launch unless it is provable).
//          A negative constant turns the core's sign; a c that depends on the head or the block
//          becomes part of the core (rule_score), and so does what is not linear in s. c > 0
//          matters because `raise` takes the maximum of the core.
// Effect   one rounding of c * log2e to f32. 1 / sqrt(D) keeps the source's own text.
#include <fmt/format.h>

#include <cmath>

#include "spec/expr_fold.h"
#include "transfer/intervals.h"
#include "transfer/rules.h"
#include "transfer/write_map.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

// Within a few units in the last place of fp64: rsqrt, 1 / sqrt and ** -0.5 differ by one.
bool is_inverse_root(double c, double d) { return std::fabs(c * std::sqrt(d) - 1) < 1e-15; }

// c, or c * log2e, as TL text.
std::optional<std::string> scale_text(Edit& edit, const ExprPtr& factor, bool of_powers) {
  const auto c = spec::constant(factor);
  if (c && *c == 1) return of_powers ? "log2e" : "1.0";
  const std::string log2e = of_powers ? " * log2e" : "";
  if (c && is_inverse_root(*c, double(edit.form.D.constant)))
    return fmt::format("rsqrt({}){}", edit.facts.dim, log2e);
  const std::optional<tl::ExprPtr> text = spell(factor, {}, edit.diagnostics);
  if (!text) return std::nullopt;
  return tl::print(of_powers ? tl::binary("*", *text, tl::name("log2e")) : *text);
}

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
    return text && edit.condition(tl::print(*text) + " > 0.0",
                                  "a running maximum needs a positive factor of the scores");
  }
  return true;
}

}  // namespace

bool same_for_all_scores(const ExprPtr& e) {
  return !spec::mentions(e, Kind::index) && !spec::mentions(e, Kind::read);
}

bool set_scale(Edit& edit, const ExprPtr& factor, bool of_powers) {
  const std::optional<std::string> text = scale_text(edit, factor, of_powers);
  if (!text) return false;
  const tl::ExprPtr value = tl::parse_expr(*text, edit.diagnostics);
  if (!value) return false;
  for (tl::Stmt& s : args_of(edit.program).body)
    for (tl::Item& d : s.items("d"))
      if (d.name == edit.facts.scale) d.expr = value;
  return true;
}

bool rule_scale(Edit& edit) {
  if (edit.term.normaliser != spec::Normaliser::softmax) return true;  // rule_normaliser's
  edit.parts = take_apart(edit.score);
  if (!edit.parts.core) edit.parts.factor = spec::real(0);
  return settle_factor(edit) && set_scale(edit, edit.parts.factor, true);
}

}  // namespace kw::transfer
