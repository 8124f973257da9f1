// What a graph computes on numbers: every operator on whole tensors, as PyTorch does it.
//
// It shares nothing with the index expressions of src/operator: a graph that these misread gives
// other numbers here. In fp64 the result is the truth; rounded to each node's own type it is what
// the user's function would give, whose error decides what is accepted of a kernel.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "num/tensor.h"
#include "operator/graph/graph.h"

namespace kw::fuzz {

// The graph's outputs. `arguments` are tensors, of no dimensions for numbers; `sizes` are the
// values of the symbols. `own_types`: each floating node is rounded to its type.
std::vector<Tensor> run(const spec::Graph& graph, const std::map<std::string, Tensor>& arguments,
                        const std::map<std::string, int64_t>& sizes, bool own_types);

}  // namespace kw::fuzz
