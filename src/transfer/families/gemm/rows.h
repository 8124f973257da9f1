// The right side of a product read with the sum along its rows: [N, K] in the place of [K, N].
#pragma once
#include <string>

#include "operator/form.h"
#include "support/diagnostic.h"
#include "tl/program.h"

namespace kw::transfer {

// Whether an operand's contiguous dimension is the one that is summed over.
bool sums_along_rows(const spec::Operand& operand, const spec::Form& form);

// Of the argument `b`, the ring of tiles that it is copied to, and the product that reads them.
// False where one of the three is not there.
bool sum_along_right_rows(tl::Program& program, const std::string& b, Diagnostics& diagnostics);

}  // namespace kw::transfer
