#include "num/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kw {

double least_norm(Dtype output, int64_t length) {
  return std::sqrt(double(length)) * std::ldexp(1.0, output == Dtype::f16 ? -14 : -100);
}

double row_error(const double* result, const double* truth, int64_t length, double least,
                 double noise) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (int64_t n = 0; n < length; ++n) {
    const double x = result[n], t = truth[n];
    if (std::isfinite(x) && std::isfinite(t)) {
      difference += (x - t) * (x - t);
      norm += t * t;
    } else if (!(x == t || (std::isnan(x) && std::isnan(t)))) {
      return kInfinity;
    }
  }
  const double due = std::sqrt(norm) + noise;
  if (due == 0) return difference == 0 ? 0 : kInfinity;
  return std::sqrt(difference) / std::max(due, least);
}

Comparison compare_rows(const Tensor& result, const Tensor& truth,
                        const std::vector<double>& allowed) {
  Comparison out;
  const int64_t length = truth.shape.empty() ? 1 : truth.shape.back();
  const int64_t rows = length == 0 ? 0 : truth.count() / length;
  out.errors.reserve(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const double error =
        row_error(&result.values[row * length], &truth.values[row * length], length);
    const double limit = allowed.size() == 1 ? allowed[0] : allowed[row];
    out.errors.push_back(error);
    if (!(error <= limit)) out.within = false;
    double ratio = error == 0 ? 0 : error / limit;
    if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();
    if (out.worst_row < 0 || ratio > out.worst_ratio) {
      out.worst_row = row;
      out.worst_ratio = ratio;
    }
  }
  return out;
}

double accepted_error(double own_error, Dtype output) {
  // A row on which the user's own function is NaN has no error to go by: half an ulp is left.
  const double own = std::isfinite(own_error) ? std::min(own_error, kLargestOwnError) : 0;
  return 2 * std::max(own, half_ulp(output));
}

}  // namespace kw
