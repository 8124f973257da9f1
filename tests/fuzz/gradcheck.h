// Whether gradients are those of a graph's outputs, by the outputs alone: along a random direction
// of all floating arguments, what the outputs change by is compared with what the gradients say,
// as torch.autograd.gradcheck does in its fast mode.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "num/tensor.h"
#include "operator/graph/graph.h"

namespace kw::fuzz {

// How much the two differ, in relation to the gradients; of several steps the best, since within a
// step a function may turn (a ReLU at 0). `gradients` are of the sum of the outputs times
// `of_outputs`, in fp64.
double gradcheck(const spec::Graph& graph, const std::map<std::string, Tensor>& arguments,
                 const std::map<std::string, int64_t>& sizes, const std::vector<Tensor>& of_outputs,
                 const std::map<std::string, Tensor>& gradients, uint64_t seed);

}  // namespace kw::fuzz
