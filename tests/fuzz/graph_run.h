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

// What is made of a number that is undefined, in rows without a key: PyTorch's NaN, or, as
// gradients are wanted of such rows, 0. There a difference is -inf: a score that is masked stays so
// without its row's largest, and its weight is 0.
enum class Undefined { as_it_is, zero };

// The values of every node, in their order.
std::vector<Tensor> every_node(const spec::Graph& graph,
                               const std::map<std::string, Tensor>& arguments,
                               const std::map<std::string, int64_t>& sizes, bool own_types,
                               Undefined undefined);

// Of transpose, repeat_interleave and index: where each element of the result, which has this
// shape, is in the first operand, flat. `done` are the values of the nodes before.
std::vector<int64_t> sources_of(const spec::Node& n, const std::vector<Tensor>& done,
                                const std::vector<int64_t>& shape);

}  // namespace kw::fuzz
