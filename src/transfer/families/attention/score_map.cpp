#include "transfer/families/attention/score_map.h"

#include <fmt/format.h>

#include "operator/expr/fold.h"

namespace kw::transfer {

using spec::ExprPtr;

bool exact_coordinates(Edit& edit, Coordinates coordinates) {
  return exact_coordinates(edit, coordinates, edit.facts.queries, edit.facts.keys);
}

bool declare_unscale(Edit& edit) {
  if (const auto c = spec::constant(edit.parts.factor); c && *c == 1) return true;
  edit.unscale = edit.fresh({"unscale"});
  std::vector<tl::Stmt>& args = args_of(edit.program).body;
  const tl::Stmt* scale = declaration_of_argument(edit.program, edit.facts.scale);
  return edit.insert({&args, static_cast<size_t>(scale - args.data()) + 1},
                     fmt::format("{}: f32 = log2e / {}", edit.unscale, edit.facts.scale));
}

bool write_score_map(Edit& edit, const ExprPtr& value) {
  const Coordinates coordinates = coordinates_of(value);
  if (!exact_coordinates(edit, coordinates)) return false;
  const auto body = edit.in_map(value, coordinates == Coordinates::real);
  if (!body) return false;
  edit.score_map = value;
  const Facts& f = edit.facts;
  return edit.insert(mask_of(edit.program, f),
                     map_text(coordinates, f.score, tl::print(f.i0), tl::print(f.j0), *body));
}

}  // namespace kw::transfer
