// Transfer of a product of matrices: the kernel of C = A B becomes that of a function of its
// elements and of the sums of its rows. The rules for attention look for other places; these have
// their own.
#pragma once
#include <optional>

#include "transfer/transfer.h"

namespace kw::transfer {

// Refuses with transfer.kernel, transfer.operand, transfer.output, transfer.dtype and
// transfer.expression.
std::optional<Result> transfer_product(const tl::Program& source, const spec::Form& form,
                                       const Target& target, Diagnostics& diagnostics);

// What is no matter of opinion: tiles, the rules about the operands and what is returned, without
// those that write what becomes of an element and the sums. Refuses as transfer_product does.
std::optional<Result> begin_product(const tl::Program& source, const spec::Form& form,
                                    const Target& target, Diagnostics& diagnostics);

}  // namespace kw::transfer
