// A score map taken apart: score = factor * core + bias.
//
// core is the raw product s, or what of the score is not linear in it (tanh(s * 0.02) of a
// softcap), or a sum times data. factor and bias do not depend on s. The factor of every softmax is
// free: the kernel multiplies in the exponent anyway.
#pragma once
#include "operator/expr/expr.h"

namespace kw::transfer {

struct Score {
  spec::ExprPtr factor, core;
  spec::ExprPtr bias;  // null when there is none
};

// core is null when the score does not depend on s.
Score take_apart(const spec::ExprPtr& score);

}  // namespace kw::transfer
