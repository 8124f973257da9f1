#include "eval/estimate.h"

namespace kw::eval {

std::optional<double> pass_at(int k, int samples, int passed) {
  if (k < 1 || samples < k) return std::nullopt;
  if (samples - passed < k) return 1.0;
  double none = 1;  // that k of the samples, drawn without putting back, have none that passed
  for (int n = samples - passed + 1; n <= samples; ++n) none *= 1.0 - double(k) / n;
  return 1 - none;
}

std::optional<double> mean(const std::vector<std::optional<double>>& estimates) {
  double sum = 0;
  for (const std::optional<double>& e : estimates) {
    if (!e) return std::nullopt;
    sum += *e;
  }
  return estimates.empty() ? std::nullopt : std::optional(sum / estimates.size());
}

}  // namespace kw::eval
