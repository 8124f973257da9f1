// The right side of a product read with the sum along its rows: [N, K] in the place of [K, N].
#pragma once
#include <string>

#include "support/diagnostic.h"
#include "tl/program.h"

namespace kw::transfer {

// Copies a part of a matrix's rows into a tile of its own.
bool brings_tile(const tl::Stmt& s);

// Of the argument `b`, the ring of tiles that it is copied to, and the product that reads them.
// False where one of the three is not there.
bool sum_along_right_rows(tl::Program& program, const std::string& b, Diagnostics& diagnostics);

}  // namespace kw::transfer
