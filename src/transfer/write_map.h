// Writing what an expression of the specification becomes in a map of the scores or of the output.
#pragma once
#include "transfer/coordinates.h"
#include "transfer/edit.h"

namespace kw::transfer {

// Replaces the largest parts that depend on the block alone, and read or compute something from the
// batch or the head (or, if asked to, from sizes), by names of `let`s; b and h themselves are read
// where they stand. Null after a refusal.
enum class Hoist { reads, sizes };
spec::ExprPtr hoist_parts(Edit& edit, const spec::ExprPtr& e, const std::string& name,
                          Hoist what = Hoist::reads);

// Whether it is the same for all heads, too.
bool same_for_all_scores(const spec::ExprPtr& e);

// The kernel's argument `scale` becomes this factor, of exponents of 2 times log2e.
bool set_scale(Edit& edit, const spec::ExprPtr& factor, bool of_powers);

// Declares the argument 1 / (factor of s) behind the scale, and names it in edit.unscale; nothing
// where the factor is 1.
bool declare_unscale(Edit& edit);

// Puts `map s[i, j] = value`, with coordinates where it needs them, before the mask.
bool write_score_map(Edit& edit, const spec::ExprPtr& value);

}  // namespace kw::transfer
