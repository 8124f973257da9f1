// What is added to a score, in the unit in which the kernel has its scores.
#pragma once
#include "transfer/editing/editing.h"

namespace kw::transfer {

// scores + bias * unit, in which what depends on the block alone is hoisted. No unit is null. Null
// after a refusal.
spec::ExprPtr with_bias(Editing& edit, spec::ExprPtr scores, const spec::ExprPtr& bias,
                        const spec::ExprPtr& unit);

}  // namespace kw::transfer
