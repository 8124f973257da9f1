// The gradients of attention's q, k and v, for the gradient of its output.
//
//   dv[j] = sum_i p[i, j] do[i]                      p = softmax of the scores, of what o is made
//   ds[i, j] = p[i, j] (do[i] . v[j] - do[i] . o[i] + dlse[i]) slope(i, j)
//   dq[i] = sum_j ds[i, j] k[j]      dk[j] = sum_i ds[i, j] q[i]
//
// Where each weight is a function of its own score, p is that and ds[i, j] = do[i] . v[j] slope.
//
// The truth in fp64 knows nothing of what the forward kernel has saved: it computes the forward
// pass itself. The exact reading takes o and the log-sums as they are given, p = exp(score - lse):
// the formulas of a kernel are equal for any o and lse, those of the forward pass among them.
#pragma once
#include "operator/family.h"

namespace kw::spec {

namespace attention_bwd {

// The gradient of the function's log-sum of a row; 0 where it returns none.
double of_log_sum(const Form& form, const Problem& problem, int64_t b, int64_t h, int64_t i);
// The output's gradient as an operand, read as the function returns it, or the output (Gradients).
Operand of_output(const Form& form, const char* name);
// The operand's own head, of a query head.
int64_t own_head(const Operand& operand, int64_t h);

std::unique_ptr<Truth> truth(const Form& form, const Problem& problem);
ExactHead exact(const Form& form, const Problem& named, const exact::Algebra& algebra, int64_t b,
                int64_t h);
// The forward pass of a problem: its output, rounded to its type, and its log-sums.
void save_forward(const Form& form, Problem& problem);

}  // namespace attention_bwd
}  // namespace kw::spec
