#include "transfer/families/attention/scale.h"

#include <fmt/format.h>

#include <cmath>

#include "operator/expr/fold.h"
#include "transfer/spell.h"

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
    for (tl::Item& d : s.names())
      if (d.name == edit.facts.scale) d.expr = value;
  return true;
}

}  // namespace kw::transfer
