// The element type; the head dimension is the text's own.
//
//   element bf16   ->   element f16
//
// When     the form has another 16-bit type than the kernel.
// Effect   none: the type is what operands round to.
#include <fmt/format.h>

#include "transfer/editing/declarations.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {

bool rule_tiles(Edit& edit) {
  tl::Stmt* element = edit.program.find(tl::Op::element);
  if (!element || (edit.form.dtype != Dtype::bf16 && edit.form.dtype != Dtype::f16))
    return edit.refuse("transfer.dtype", edit.place(nullptr),
                       fmt::format("the function computes in {}", name(edit.form.dtype)),
                       "supported are bf16 and f16");
  element->type() = name(edit.form.dtype);
  const tl::Item* d = constant_named(edit.program, "D");
  const int64_t own = d && d->expr ? std::stoll(d->expr->text) : 0;
  if (edit.form.D.constant == own && edit.form.Dv.constant == own) return true;
  return edit.refuse(
      "transfer.head_dim", edit.place(nullptr),
      fmt::format("the head dimension is {}, for which this kernel of gradients has no tiles",
                  edit.form.D.constant),
      fmt::format("supported is {}, for q, k and v alike", own));
}

}  // namespace kw::transfer::bwd
