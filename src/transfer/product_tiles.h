// The tiles that the database has for a product on a target: what a row sets, and which is tried.
#pragma once
#include "transfer/transfer.h"

namespace kw::transfer {

//   param BN = 128, BK = 64, STAGES = 3  ->  param BN = 64, BK = 64, STAGES = 3
//
// When     a row of the database is for products and the target. Where the compiler lacked
//          registers (Target::tried), the next row, which leaves more. Without one, the text's own.
// Effect   none.
// Sets the constants of the result's program, its `tiles` and `roomier`. Reports transfer.kernel
// for a constant that the program has not.
bool product_tiles(Result& result, const Target& target, Diagnostics& diagnostics);

}  // namespace kw::transfer
