// A graph as capture's JSON, and as the Python function that capture would have read.
#pragma once
#include <string>

#include "operator/graph/graph.h"

namespace kw::fuzz {

// Lines 1 ... of the result hold one operator each, so that every node has a line to blame.
// `example` are the lines of example_inputs()'s body.
std::string python_of(const spec::Graph& graph, const std::string& sizes,
                      const std::string& example);

std::string json_of(const spec::Graph& graph);

}  // namespace kw::fuzz
