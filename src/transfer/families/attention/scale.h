// The kernel's argument `scale`: the factor of the scores in the exponents of 2, or of the scores.
#pragma once
#include "transfer/editing/editing.h"
#include "transfer/families/attention/score.h"

namespace kw::transfer {

// Whether e is one number in a launch: of constants, sizes and scalar arguments.
bool same_for_all_scores(const spec::ExprPtr& e);

// Makes the factor of a score positive, or part of the core. Refuses a score that does not depend
// on q and k.
bool settle_factor(Editing& edit, const spec::ExprPtr& score, Score& parts);

// The text of the argument `scale` becomes this factor, times log2e where it is that `of_powers` of
// e. 1 / sqrt(D) keeps the source's own text, with the constant's own name.
bool set_scale(Editing& edit, const std::string& scale, const std::string& columns,
               const spec::ExprPtr& factor, bool of_powers);

}  // namespace kw::transfer
