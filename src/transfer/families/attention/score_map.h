// The map of the scores, which stands before the mask.
#pragma once
#include "transfer/editing/write_map.h"
#include "transfer/families/attention/edit.h"

namespace kw::transfer {

// Declares the argument 1 / (factor of s) behind the scale, and names it in edit.unscale; nothing
// where the factor is 1.
bool declare_unscale(Edit& edit);

// The condition of a map of these coordinates (write_map.h), by the kernel's letters.
bool exact_coordinates(Edit& edit, Coordinates coordinates);

// Puts `map s[i, j] = value`, with coordinates where it needs them, before the mask.
bool write_score_map(Edit& edit, const spec::ExprPtr& value);

}  // namespace kw::transfer
