// The element type and the head dimension.
//
//   element bf16   ->   element f16
//   param D = 128  ->   param D = 64, and `param STAGES = 4`
//   param D = 192, V = 128  ->  param D = 96, V = 96
//
// When     the form has another 16-bit type, or another head dimension for which there are tiles.
// Why      a consumer has half of the columns of dQ, or all of them, whatever D is: so the copy
// engine adds one
//          element of dQ once for a block of keys, and sums have one order where blocks take turns.
// Effect   none: the type is what operands round to.
#include <fmt/format.h>

#include "transfer/editing/declarations.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using tl::Op;
using tl::Stmt;

constexpr int64_t kHalf = 64;    // of the kernel's head dimension
constexpr int64_t kNarrow = 96;  // likewise where rows of v have fewer columns
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
  tl::Item *d = constant_named(edit.program, "D"), *v = constant_named(edit.program, "V");
  const auto of = [](const tl::Item* constant) {
    return constant && constant->expr ? std::stoll(constant->expr->text) : 0;
  };
  const int64_t asked = edit.form.D.constant, of_values = edit.form.Dv.constant;
  if (asked == of(d) && of_values == of(v ? v : d)) return true;
  const int64_t other = v ? kNarrow : kHalf;
  if (asked != of_values || asked != other || of(d) != 2 * other)
    return edit.refuse(
        "transfer.head_dim", edit.place(nullptr),
        asked == of_values
            ? fmt::format(
                  "the head dimension is {}, for which this kernel of gradients has no tiles",
                  asked)
            : fmt::format("the head dimension is {}, that of v {}, for which this kernel of "
                          "gradients has no tiles",
                          asked, of_values),
        edit.waits_for_products()
            ? "supported are 64, 96, 128 and 256, for q, k and v alike, and 192 where v has 128"
            : "supported are 64 and 128, for q, k and v alike; for sm_90a also 96 and 256, and "
              "192 where v has 128");
  d->expr = tl::integer(asked);
  if (v) v->expr = tl::integer(of_values);
  tl::Item* stages = v ? nullptr : constant_named(edit.program, "STAGES");
  if (stages) stages->expr = tl::integer(kStages);
  return true;
}

}  // namespace kw::transfer::bwd
