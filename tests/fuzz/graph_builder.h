// A function of PyTorch under construction: the graph that capture would write of it, made by hand.
//
// Each call adds one ATen operator, with the shape and the type that PyTorch gives its result
// (broadcasting, promotion). The same graph is then read as a specification (graph_text.h prints
// it as capture's JSON), printed as Python, and run on numbers (graph_run.h): three readings that
// must agree.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "operator/graph/graph.h"

namespace kw::fuzz {

using spec::ExprPtr;
using Shape = std::vector<ExprPtr>;

spec::Value node(int n);
spec::Value number(double x);
spec::Value whole(int64_t x);
spec::Value truth(bool x);
spec::Value size(const ExprPtr& e);
spec::Value type(Dtype t);
spec::Value list(std::vector<spec::Value> items);
ExprPtr symbol(const std::string& name);
ExprPtr constant(int64_t n);

class Builder {
 public:
  int argument(const std::string& name, Dtype dtype, Shape shape);

  // Pointwise operators of one or two operands: nodes or numbers.
  int unary(const std::string& op, int a);
  int binary(const std::string& op, const spec::Value& a, const spec::Value& b);
  int binary(const std::string& op, int a, int b) { return binary(op, node(a), node(b)); }
  int binary(const std::string& op, int a, double b) { return binary(op, node(a), number(b)); }
  int integer(const std::string& op, int a, int64_t b) { return binary(op, node(a), whole(b)); }
  int where(int condition, const spec::Value& a, const spec::Value& b);
  int masked_fill(int x, int mask, double value);
  int clamp(int x, int64_t low, int64_t high);
  int to(int x, Dtype dtype);

  // Views and tensors that the function makes.
  int arange(const ExprPtr& end);
  int full(const char* op, Shape shape, Dtype dtype);  // ones, zeros
  int triangle(const char* op, int x, int64_t diagonal);
  int view(const char* op, int x, Shape shape);  // view, reshape, expand
  int unsqueeze(int x, int dim);
  int transpose(int x, int a, int b);
  int repeat_interleave(int x, int64_t times, int dim);
  // x[i0, i1, ...] with integer tensors that broadcast together.
  int index(int x, const std::vector<int>& at);

  // Over the last dimension.
  int softmax(int x, bool in_f32);
  int reduce(const char* op, int x, bool keep);  // amax, sum, logsumexp
  int matmul(int a, int b);
  int einsum(const std::string& text, int a, int b, Shape shape);
  int attention(int q, int k, int v, int mask, bool causal, double scale, bool grouped);

  const Shape& shape(int n) const { return graph.nodes[n].shape; }
  Dtype dtype(int n) const { return graph.nodes[n].dtype; }
  int rank(int n) const { return graph.nodes[n].rank(); }

  spec::Graph graph;

 private:
  int add(const std::string& op, std::vector<spec::Value> args, Shape shape, Dtype dtype);
  Dtype promoted(const spec::Value& a, const spec::Value& b) const;
  Shape broadcast(const Shape& a, const Shape& b) const;
  Shape shape_of(const spec::Value& v) const;
};

}  // namespace kw::fuzz
