// The rules of a product of matrices, in the order in which they are applied (gemm.cpp).
//
// Places are found by structure (edit.h), so the rules are the same for texts whose threads copy
// and multiply alike and for one with a loader; the sums of rows alone differ, by whole rows or by
// a pass behind the kernel.
#pragma once
#include "transfer/families/gemm/edit.h"

namespace kw::transfer::gemm {

bool rule_tiles(Edit& edit);       // the constants that were measured best
bool rule_product(Edit& edit);     // the element type, and which argument is which
bool rule_batches(Edit& edit);     // a side without a batch
bool rule_right_rows(Edit& edit);  // a right side with the sum along its rows
bool rule_value(Edit& edit);       // what becomes of an element
bool rule_row_sums(Edit& edit);    // the sums of the rows
bool rule_matrix(Edit& edit);      // a matrix that is not asked for

}  // namespace kw::transfer::gemm
