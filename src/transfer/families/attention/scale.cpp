#include "transfer/families/attention/scale.h"

#include <fmt/format.h>

#include <cmath>

#include "operator/expr/fold.h"
#include "transfer/editing/spell.h"
#include "transfer/masks/predicate_intervals.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

// Within a few units in the last place of fp64: rsqrt, 1 / sqrt and ** -0.5 differ by one.
bool is_inverse_root(double c, double d) { return std::fabs(c * std::sqrt(d) - 1) < 1e-15; }

// c, or c * log2e, as TL text.
std::optional<std::string> scale_text(Editing& edit, const std::string& columns,
                                      const ExprPtr& factor, bool of_powers) {
  const auto c = spec::constant(factor);
  if (c && *c == 1) return of_powers ? "log2e" : "1.0";
  const std::string log2e = of_powers ? " * log2e" : "";
  if (c && is_inverse_root(*c, double(edit.form.D.constant)))
    return fmt::format("rsqrt({}){}", columns, log2e);
  const std::optional<tl::ExprPtr> text = spell(factor, {}, edit.diagnostics);
  if (!text) return std::nullopt;
  return tl::print(of_powers ? tl::binary("*", *text, tl::name("log2e")) : *text);
}

}  // namespace

bool same_for_all_scores(const ExprPtr& e) {
  return !spec::mentions(e, Kind::index) && !spec::mentions(e, Kind::read);
}

bool settle_factor(Editing& edit, const ExprPtr& score, Score& p) {
  const std::optional<double> c = spec::constant(p.factor);
  if (!p.core || (c && *c == 0))
    return edit.refuse("transfer.score", edit.place(edit.term.score),
                       fmt::format("the score {} does not depend on q and k", print(score)),
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

bool set_scale(Editing& edit, const std::string& scale, const std::string& columns,
               const ExprPtr& factor, bool of_powers) {
  const std::optional<std::string> text = scale_text(edit, columns, factor, of_powers);
  if (!text) return false;
  const tl::ExprPtr value = tl::parse_expr(*text, edit.diagnostics);
  if (!value) return false;
  for (tl::Stmt& s : edit.program.find(tl::Op::args)->body)
    for (tl::Item& d : s.names())
      if (d.name == scale) d.expr = value;
  return true;
}

}  // namespace kw::transfer
