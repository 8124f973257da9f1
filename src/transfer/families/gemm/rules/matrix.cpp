// A matrix that nobody asks for is not written.
//
//   store acc -> o_s[me]; sync_warpgroup me; copy_tile_out o_s[me] -> o[...] by 1  ->  (nothing)
//   without o and o_s
//
// When     the function returns row sums alone.
// Effect   none.
#include "transfer/families/gemm/rules/rules.h"

namespace kw::transfer::gemm {

bool rule_matrix(Edit& edit) {
  if (edit.form.returns("o")) return true;
  const Found store = edit.store_place();
  store.block->erase(store.block->begin() + store.at);
  store_nothing(edit.result.program, edit.f.o, edit.f.o_tile);
  return true;
}

}  // namespace kw::transfer::gemm
