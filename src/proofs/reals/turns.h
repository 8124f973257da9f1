// What one turn of a loop over key blocks may do with reals, and what it hands on to the next.
//
// That a program does the same at its thousandth key block as at its fifth is no matter of cases.
// It is one of form: the turns of an online softmax are made of
//
//   mma s = q @ k.T                                        this turn's scores
//   map s[i, j] = ...                                      of themselves and of data
//   raised = online_max m, factor, s, slack, scale
//   map s[i, j] = exp2(fma(s[i, j], scale, -offset[i]))    offset: m * scale, or 0
//   map_rows l[i] = l[i] * factor[i]
//   row_sum l += s
//   map acc[i, j] = acc[i, j] * factor[i]
//   mma_add acc += p @ v
//
// and hand on one reference m with its factor, one sum l and outputs acc, which each block begins
// anew. Scores are never made of these. So no row counts turns, nothing grows from turn to turn or
// from block to block but sums of weights, and a weight lies as near to 1 as the reference lets it.
// Without a reference weights are any function of scores. What is done another way may be right;
// cases show it for as many turns as they have.
//
// Behind the loops rows and outputs are finished by formulas in which what was handed on has a
// degree of 1, and of 2 in an output, and only a sum is asked whether it is 0: a row without a key.
//
// And none of them is a detour. Formulas over reals are equal to many others that leave the range
// of fp32 or lose all their bits: ((s + 1)^3 - s^3 - 3 s^2 - 1) / 3 is s. A score has no higher
// degree in scores, data and integers than the specification's; exponentials, and maxima and
// comparisons of reals, stand only where it has some, and terms cancel only where its terms do
// (cancels.h).
#pragma once
#include <map>
#include <string>

#include "operator/form.h"
#include "proofs/solver/terms.h"
#include "tl/program.h"

namespace kw::proofs {

// What of the kernel has another form, with the statement; "" where nothing has.
std::string another_form(const tl::Program& program, const spec::Form& form,
                         const std::map<std::string, Term>& sizes, Vocabulary& vocabulary);

}  // namespace kw::proofs
