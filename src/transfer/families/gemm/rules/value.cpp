// clang-format off
// What becomes of an element of the product before it is rounded.
//
//   store acc -> o_s[me]  ->  map_at acc[i, j] from (i0, n * BN) = max(acc[i, j] + bias[j], 0.0)
//                             store acc -> o_s[me]
//   with bias: in bf16[N]
//
// When     the value is more than the product itself.
// Effect   one rounding in f32 for each operation, before the output is rounded.
// clang-format on
#include "transfer/editing/spell.h"
#include "transfer/editing/write_map.h"
#include "transfer/families/gemm/rules/rules.h"
#include "transfer/masks/coordinates.h"

namespace kw::transfer::gemm {

using spec::ExprPtr;
using spec::Kind;

bool rule_value(Edit& edit) {
  const ExprPtr& value = edit.form.product->value;
  if (value->kind == Kind::score) return true;
  if (!edit.add_arguments(value)) return false;
  Spelling how;
  const tl::ExprPtr i = tl::name("i"), j = tl::name("j");
  how.score = tl::index(tl::name(edit.f.acc), {i, j});
  how.indices = {{"i", i},
                 {"j", j},
                 {"b", tl::field(tl::name("c"), "b")},
                 {"h", tl::field(tl::name("c"), "h")}};
  const bool coordinates = has_coordinate(value);
  const auto body = spell(edit.renamed(value), how, edit.diagnostics);
  if (!body) return false;
  return edit.insert(edit.store_place(),
                     map_text(coordinates ? Coordinates::integer : Coordinates::none, edit.f.acc,
                              tl::print(edit.f.i0), tl::print(edit.f.j0), tl::print(*body)));
}

}  // namespace kw::transfer::gemm
