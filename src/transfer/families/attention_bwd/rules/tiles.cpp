// The element type and the head dimension.
//
//   element bf16   ->   element f16
//   param D = 128  ->   param D = 64, and `param STAGES = 4`
//   wgmma_add_columns dq_r += ds_s[0][t - 1] @ k_s[0][u] from me * 64
//   wgmma_add_columns dq_r += ds_s[1][t - 1] @ k_s[1][u] from me * 64
//     ->   wgmma_add dq_r += ds_s[me][t - 1] @ k_s[me][u]
//   tma_add dq_s[r][t] -> sum_dq[c.b, h, m * BM, r * 64]   ->   ... m * BM, 0]
//
// When     the form has another 16-bit type, or another head dimension for which there are tiles.
// Why      at 128 each consumer has half of the columns of dQ and needs all gradients of scores for
//          them. At 64 there are as many columns as one has rows: each makes all of them of its own
//          keys, and the copy engine adds the two up.
// Effect   none but the order in which dq is added up: the type is what operands round to.
#include <fmt/format.h>

#include "transfer/editing/declarations.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using tl::Op;
using tl::Stmt;

constexpr int64_t kTile = 64;  // columns of dQ that the copy engine adds at a time
// Tiles of Q and dO in shared memory, which half as wide ones leave room for: with two of them a
// causal row is 0.8 of what it is with four.
constexpr int64_t kStages = 4;

// Of its own keys alone, each consumer makes all columns. False where a product has another form.
bool of_own_keys(Edit& edit, std::vector<Stmt>& body) {
  for (size_t n = 0; n < body.size(); ++n) {
    if (!of_own_keys(edit, body[n].body)) return false;
    if (body[n].op == Op::tma_add) body[n].column() = tl::integer(0);
    if (body[n].op != Op::wgmma_add_columns) continue;
    const auto own =
        tl::parse_statement("wgmma_add dq_r += ds_s[me][t - 1] @ k_s[me][u]", edit.diagnostics);
    const bool two =
        n + 1 < body.size() && body[n + 1].op == Op::wgmma_add_columns &&
        tl::print_head(body[n]).find("ds_s[0][t - 1] @ k_s[0][u]") != std::string::npos;
    if (!own || !two) return false;
    body[n] = *own;
    body.erase(body.begin() + std::ptrdiff_t(n) + 1);
  }
  return true;
}

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
  if (!alike || asked != kTile || own != 2 * kTile)
    return edit.refuse(
        "transfer.head_dim", edit.place(nullptr),
        fmt::format("the head dimension is {}, for which this kernel of gradients has no tiles",
                    asked),
        fmt::format("supported are {} and {}, for q, k and v alike", kTile, own));
  d->expr = tl::integer(asked);
  if (tl::Item* stages = constant_named(edit.program, "STAGES"))
    stages->expr = tl::integer(kStages);
  return of_own_keys(edit, edit.program.body) ||
         edit.refuse("transfer.kernel", {}, "this kernel's products for dQ have another form", "");
}

}  // namespace kw::transfer::bwd
