// Which scores are dropped: the condition of the mask.
//
//   where(i < N, s[i, j], -inf)   ->   where(i <= j and i < N, s[i, j], -inf)
//
// When     the form has a keep predicate. i is the key and j the query.
// Effect   none: integers.
#include <fmt/format.h>

#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {

bool rule_mask(Edit& edit) {
  const spec::ExprPtr& keep = edit.term.keep;
  if (!keep) return true;
  if (spec::mentions(keep, spec::Kind::read) || spec::mentions(keep, spec::Kind::argument) ||
      spec::mentions(keep, spec::Kind::index, "h"))
    return edit.refuse(
        "transfer.mask", edit.place(keep),
        fmt::format("the mask is {}, and no rule writes one of data into a kernel of "
                    "gradients yet",
                    print(keep)),
        "supported are masks of positions and sizes");
  const auto text = edit.spelled(edit.named(keep), "j", "i");
  if (!text) return false;
  const tl::ExprPtr condition =
      tl::parse_expr(fmt::format("({}) and i < N", *text), edit.diagnostics);
  if (!condition) return false;
  tl::Item& body = edit.mask()->body[0].items(tl::Hole::value).at(0);
  body.expr = tl::where(condition, body.expr->args[1], body.expr->args[2]);
  return true;
}

}  // namespace kw::transfer::bwd
