// How far a result is from the truth: one relative L2 error per row.
//
// Classes first: where the truth is NaN, +inf or -inf, the result must be the same class, and
// nowhere else; a row that breaks this has error infinity. Then the finite entries: |x - t| / |t|
// over the row, both norms in fp64. A row whose truth is zero has error 0 if the result is zero
// and infinity otherwise. An error that is NaN never passes, because every test here is written
// `!(error <= allowed)`.
#pragma once
#include <vector>

#include "num/tensor.h"

namespace kw {

struct Comparison {
  std::vector<double> errors;  // one for each row: the dimensions but the last, flattened
  int64_t worst_row = -1;      // where error / allowed is largest; -1 when there are no rows
  double worst_ratio = 0;      // that largest error / allowed
  bool within = true;          // every row's error is at most what is allowed
};

// In relation to the truth's norm and `noise`, which is added to it; where their sum is below
// `least`, to that, unless it is zero.
double row_error(const double* result, const double* truth, int64_t length, double least = 0,
                 double noise = 0);

// The norm of a row below which no kernel can be right in relation to it: f16 has fewer digits
// below 2^-14, and where outputs are bf16 the kernel's fp32 exponentials below 2^-126 may be zero,
// which a sum of many, times values, carries to 2^-100 with room to spare.
double least_norm(Dtype output, int64_t length);

// Rows of the last dimension. `allowed` has one entry for each row, or one for all of them. The
// shapes must be equal.
Comparison compare_rows(const Tensor& result, const Tensor& truth,
                        const std::vector<double>& allowed);

// More of the user's own error on a row is not taken for a kernel's excuse: a function whose rows
// are coarser than this (a mean taken in bf16, -1e9 added to scores) says nothing of a kernel in
// fp32.
inline constexpr double kLargestOwnError = 0x1p-4;

// What is accepted of a kernel: 2 * max(the error of the user's own function, half an ulp), where
// no more than kLargestOwnError of the former counts, a sixteenth; and none of one that is no
// number.
double accepted_error(double own_error, Dtype output);

}  // namespace kw
