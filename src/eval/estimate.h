// pass@k: how likely at least one of k answers passes.
#pragma once
#include <optional>
#include <vector>

namespace kw::eval {

// Of n independent samples c passed: 1 - C(n - c, k) / C(n, k), the estimator without bias of
// Chen et al., Evaluating Large Language Models Trained on Code (2021), section 2.1. Nothing where
// there are fewer than k samples: then nobody can say.
std::optional<double> pass_at(int k, int samples, int passed);

// The mean over tasks of one estimate each; nothing where a task has none.
std::optional<double> mean(const std::vector<std::optional<double>>& estimates);

}  // namespace kw::eval
