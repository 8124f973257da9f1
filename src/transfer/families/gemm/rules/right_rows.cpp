// clang-format off
// A right side that is given with the sum along its rows, as the weights of torch.nn.Linear are.
//
//   b: in element[B, H, K, N]                        ->  b: in element[B, H, N, K]
//   tile b_s: ring(STAGES) of element[BK, BN]        ->  tile b_s: ring(STAGES) of element[BN, BK]
//   cp_async_tile b[.., k * BK, n * BN] -> b_s[k]  ->  cp_async_tile b[.., n * BN, k * BK] -> b_s[k]
//   mma_add acc += a_r @ b_s[k]                     ->  mma_add_transposed acc += a_r @ b_s[k].T
//
// When     the dimension of the right side that is contiguous is the one that is summed over.
// Effect   none.
// clang-format on
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "transfer/families/gemm/rows.h"
#include "transfer/families/gemm/rules/rules.h"

namespace kw::transfer::gemm {

bool rule_right_rows(Edit& edit) {
  if (!edit.right_rows || edit.has_right_rows) return true;
  return sum_along_right_rows(edit.result.program, edit.f.b, edit.diagnostics) ||
         edit.refuse(
             "transfer.kernel", {},
             fmt::format("this kernel has no ring of tiles that `{}` alone is copied to and one "
                         "product reads",
                         edit.f.b),
             "kernels/sm80/gemm.cu has one");
}

}  // namespace kw::transfer::gemm
