// Which scores are dropped: the condition of the mask.
//
//   where(i < N, s[i, j], -inf)   ->   where(i <= j and i < N, s[i, j], -inf)
//                                 ->   where(document[c.b, j] == document[c.b, i] and i < N, ...)
//
// When     the form has a keep predicate. i is the key and j the query.
// Effect   none: integers.
#include <fmt/format.h>

#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {

bool rule_mask(Edit& edit) {
  if (!edit.keep) return true;
  const auto text = edit.in_map(edit.keep, false);
  if (!text) return false;
  const tl::ExprPtr condition =
      tl::parse_expr(fmt::format("({}) and i < N", *text), edit.diagnostics);
  if (!condition) return false;
  tl::Item& body = edit.mask().body.back().items(tl::Hole::value).at(0);
  body.expr = tl::where(condition, body.expr->args[1], body.expr->args[2]);
  return true;
}

}  // namespace kw::transfer::bwd
