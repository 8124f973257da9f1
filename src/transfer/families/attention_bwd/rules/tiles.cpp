// The element type and the head dimension.
//
//   element bf16   ->   element f16
//   param D = 128  ->   param D = 64, and `param STAGES = 4`
//
// When     the form has another 16-bit type, or another head dimension for which there are tiles.
// Why      each consumer has half of the columns of dQ, whatever D is: so the copy engine adds one
//          element of dQ once for a block of keys, and sums have one order where blocks take turns.
// Effect   none: the type is what operands round to.
#include <fmt/format.h>

#include "transfer/editing/declarations.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using tl::Op;
using tl::Stmt;

constexpr int64_t kHalf = 64;  // of the kernel's head dimension
// Tiles of Q and dO in shared memory, which half as wide ones leave room for: with two of them a
// causal row is 0.8 of what it is with four.
constexpr int64_t kStages = 4;

}  // namespace

bool rule_tiles(Edit& edit) {
  Stmt* element = edit.program.find(Op::element);
  if (!element || (edit.form.dtype != Dtype::bf16 && edit.form.dtype != Dtype::f16))
    return edit.refuse("transfer.dtype", edit.place(nullptr),
                       fmt::format("the function computes in {}", name(edit.form.dtype)),
                       "supported are bf16 and f16");
  element->type() = name(edit.form.dtype);
  tl::Item* d = constant_named(edit.program, "D");
  const int64_t own = d && d->expr ? std::stoll(d->expr->text) : 0, asked = edit.form.D.constant;
  const bool alike = edit.form.Dv.constant == asked;
  if (alike && asked == own) return true;
  if (!alike || asked != kHalf || own != 2 * kHalf)
    return edit.refuse(
        "transfer.head_dim", edit.place(nullptr),
        fmt::format("the head dimension is {}, for which this kernel of gradients has no tiles",
                    asked),
        "supported are 64 and 128, and 256 on sm_90a, for q, k and v alike");
  d->expr = tl::integer(asked);
  if (tl::Item* stages = constant_named(edit.program, "STAGES"))
    stages->expr = tl::integer(kStages);
  return true;
}

}  // namespace kw::transfer::bwd
