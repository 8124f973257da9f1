// What one turn of a loop over blocks of queries may do with reals, where gradients of keys are the
// output, and what it hands on to the next.
//
//   fill_columns s = offset                                of the row's log-sum
//   mma_add_transposed s += k @ q.T                        this turn's scores
//   map s[i, j] = exp2(s[i, j] * scale_log2)               weights, none above 1 by the log-sum
//   fill_columns dp = delta
//   mma_add_transposed dp += v @ do.T
//   map dp[i, j] = dp[i, j] * s[i, j]                      gradients of scores
//   mma_add dv += p @ do;  mma_add dk += ds @ q            what is handed on
//   fill dq = 0.0;  mma_add dq += ds @ k                   of this turn, added in memory
//
// Handed on are accumulators alone that begin as 0 before the loop and that products add to: what a
// turn computes is a function of its own queries, keys and data, the same in every turn. Behind the
// loop they are multiplied by numbers of the launch.
//
// And no formula is a detour (turns.h): none has a higher degree than the specification's
// derivatives, functions and comparisons of reals stand where these have some, and terms cancel
// where theirs do.
#pragma once
#include <map>
#include <string>

#include "operator/form.h"
#include "proofs/solver/terms.h"
#include "tl/program.h"

namespace kw::proofs {

// What of the kernel has another form, with the statement; "" where nothing has.
std::string another_form_of_gradients(const tl::Program& program, const spec::Form& form,
                                      const std::map<std::string, Term>& sizes,
                                      Vocabulary& vocabulary);

}  // namespace kw::proofs
