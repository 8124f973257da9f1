// The kernel's argument `scale`: the factor of the scores in the exponents of 2.
#pragma once
#include "transfer/families/attention/edit.h"

namespace kw::transfer {

// Whether e is one number in a launch: of constants, sizes and scalar arguments.
bool same_for_all_scores(const spec::ExprPtr& e);

// The argument's text becomes this factor, times log2e where it is that `of_powers` of e. 1 /
// sqrt(D) keeps the source's own text.
bool set_scale(Edit& edit, const spec::ExprPtr& factor, bool of_powers);

}  // namespace kw::transfer
