#include "gradcheck.h"

#include <cmath>
#include <random>

#include "graph_run.h"

namespace kw::fuzz {
namespace {

double weighted_sum(const spec::Graph& graph, const std::map<std::string, Tensor>& arguments,
                    const std::map<std::string, int64_t>& sizes,
                    const std::vector<Tensor>& of_outputs) {
  const std::vector<Tensor> nodes = every_node(graph, arguments, sizes, false, Undefined::zero);
  double sum = 0;
  for (size_t n = 0; n < of_outputs.size(); ++n) {
    const std::vector<double>& output = nodes[graph.outputs[n]].values;
    for (size_t k = 0; k < output.size(); ++k)
      if (std::isfinite(output[k])) sum += output[k] * of_outputs[n].values[k];
  }
  return sum;
}

}  // namespace

double gradcheck(const spec::Graph& graph, const std::map<std::string, Tensor>& arguments,
                 const std::map<std::string, int64_t>& sizes, const std::vector<Tensor>& of_outputs,
                 const std::map<std::string, Tensor>& gradients, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  double best = HUGE_VAL;
  for (const double step : {1e-6, 1e-7, 1e-5}) {
    std::map<std::string, Tensor> ahead = arguments, behind = arguments;
    double told = 0, square = 0;
    for (const auto& [name, gradient] : gradients)
      for (size_t k = 0; k < gradient.values.size(); ++k) {
        const double x = normal(random), g = gradient.values[k];
        ahead[name].values[k] += step * x;
        behind[name].values[k] -= step * x;
        told += g * x;
        square += g * g;
      }
    const double seen = (weighted_sum(graph, ahead, sizes, of_outputs) -
                         weighted_sum(graph, behind, sizes, of_outputs)) /
                        (2 * step);
    best = std::min(best, std::fabs(seen - told) / (std::sqrt(square) + 1e-6));
  }
  return best;
}

}  // namespace kw::fuzz
