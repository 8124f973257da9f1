// Puts plain operators in the place of one composite node. They stand at the end of the graph and
// blame the line of the operator that they replace.
#pragma once
#include <fmt/format.h>

#include "operator/graph/graph.h"

namespace kw::spec {

inline Value node_value(int node) {
  Value v;
  v.kind = Value::Kind::node;
  v.node = node;
  return v;
}

inline Value number(double x) {
  Value v;
  v.kind = Value::Kind::real;
  v.real = x;
  return v;
}

inline Value whole(int64_t x) {
  Value v;
  v.kind = Value::Kind::integer;
  v.integer = x;
  v.real = static_cast<double>(x);
  return v;
}

class Opener {
 public:
  Opener(Graph& graph, int node) : graph_(graph), node_(node), original_(graph.nodes[node]) {}

  const Node& original() const { return original_; }
  bool is_boolean(int n) const { return graph_.nodes[n].dtype == Dtype::boolean; }
  const std::vector<ExprPtr>& shape(int n) const { return graph_.nodes[n].shape; }
  Dtype dtype(int n) const { return graph_.nodes[n].dtype; }

  int add(const char* op, std::vector<Value> args, std::vector<ExprPtr> shape, Dtype dtype) {
    return graph_.add(make(op, std::move(args), std::move(shape), dtype));
  }
  int add(const char* op, std::vector<Value> args, std::vector<ExprPtr> shape) {
    return add(op, std::move(args), std::move(shape), original_.dtype);
  }
  // The composite node itself becomes this operator.
  void become(const char* op, std::vector<Value> args) {
    graph_.nodes[node_] = make(op, std::move(args), original_.shape, original_.dtype);
  }

 private:
  Node make(const char* op, std::vector<Value> args, std::vector<ExprPtr> shape, Dtype dtype) {
    Node n{fmt::format("{}_{}", original_.name, op), op, ""};
    n.args = std::move(args);
    n.shape = std::move(shape);
    n.dtype = dtype;
    n.span = original_.span;
    return n;
  }

  Graph& graph_;
  const int node_;
  const Node original_;
};

// Means, variances and norms (norms.cpp). True if the node is none, or is opened.
bool open_norm(Opener& opener, Diagnostics& diagnostics);

}  // namespace kw::spec
