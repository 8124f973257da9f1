// The gradients of what a graph computes, by the chain rule backwards through its operators, as
// PyTorch's autograd goes.
//
// It shares nothing with src/operator, which differentiates one expression of a score symbolically:
// here every operator of the user's graph turns the gradient of its result into those of its
// operands, on numbers. Rows without a key give zeros.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "num/tensor.h"
#include "operator/graph/graph.h"

namespace kw::fuzz {

// Of each floating tensor among the arguments, of their shapes, in fp64. `of_outputs` are the
// gradients of the graph's outputs. `own_types`: each value, and the gradient of each, is rounded
// to its node's type, as PyTorch does; otherwise it is the truth.
std::map<std::string, Tensor> gradients(const spec::Graph& graph,
                                        const std::map<std::string, Tensor>& arguments,
                                        const std::map<std::string, int64_t>& sizes,
                                        const std::vector<Tensor>& of_outputs, bool own_types);

}  // namespace kw::fuzz
