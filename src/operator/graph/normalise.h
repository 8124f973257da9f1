// From the graph to index expressions: what one element of a node is, as a scalar function of its
// indices.
//
// Views, broadcasts, pointwise operators, creation and gathers disappear. Reductions stay: an
// element of a reduced node is a `read` of a tensor named "%n" (n is the node's number), and
// body() gives what is reduced. Composite operators (scaled_dot_product_attention) are first opened
// into the operators they stand for. One file a family: views.cpp, pointwise.cpp, creation.cpp,
// gather.cpp, reduction.cpp, rounding.cpp, composite.cpp.
//
// An operator that no family knows is refused once, by name and line; from then on failed() is true
// and the expressions mean nothing.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/graph/graph.h"

namespace kw::spec {

using Indices = std::vector<ExprPtr>;

enum class Reduction { sum, max, softmax, logsumexp };

class Elements {
 public:
  Elements(const Graph& graph, Diagnostics& diagnostics)
      : graph_(graph), diagnostics_(diagnostics) {}

  // Element `at` of a node; at.size() is the node's rank.
  ExprPtr element(int node, const Indices& at);
  // Of an operand that broadcasts against a result with indices `at`; numbers are themselves.
  ExprPtr broadcast(const Value& value, const Indices& at);

  // What the reduced node %n reduces, at index r of the reduced dimension.
  ExprPtr body(int node, const Indices& at, const ExprPtr& r);
  // The same in factors: the two operands of a product of matrices, or the body alone.
  std::vector<ExprPtr> factors(int node, const Indices& at, const ExprPtr& r);
  Reduction reduction(int node) const;
  // The extent of the reduced dimension.
  ExprPtr extent(int node);
  // The node behind a read of "%n"; -1 for an argument of the user's.
  static int reduced(const ExprPtr& e);

  // A new index that runs over 0 .. extent - 1. Splitting uses that bound.
  ExprPtr index(const std::string& name, ExprPtr extent);
  // flat // size and flat % size, simplified with what is known of the indices' bounds.
  struct Split {
    ExprPtr quotient, remainder;
  };
  Split split(const ExprPtr& flat, const ExprPtr& size) const;
  const std::map<std::string, ExprPtr>& extents() const { return extents_; }

  const Graph& graph() const { return graph_; }
  const Node& node(int n) const { return graph_.nodes[n]; }
  // A place where an integer was made of a real, whose value may depend on how that was rounded.
  void note_rounding(const Span& place) { roundings_.push_back(place); }
  const std::vector<Span>& roundings() const { return roundings_; }
  ExprPtr refuse(const Node& node, const std::string& why, const std::string& hint = {},
                 const std::string& code = "spec.operator");
  bool failed() const { return failed_; }

 private:
  bool is_below(const ExprPtr& e, const ExprPtr& size) const;

  const Graph& graph_;
  Diagnostics& diagnostics_;
  std::map<std::string, ExprPtr> extents_;
  std::vector<Span> roundings_;
  bool failed_ = false;
};

// Does the size a, a product of numbers and symbols, divide the size b?
bool divides(const ExprPtr& a, const ExprPtr& b);

// One family: the element of a node of this operator.
using ElementOf = ExprPtr (*)(Elements&, const Node&, const Indices& at);
const std::map<std::string_view, ElementOf>& view_operators();
const std::map<std::string_view, ElementOf>& pointwise_operators();
const std::map<std::string_view, ElementOf>& creation_operators();
const std::map<std::string_view, ElementOf>& gather_operators();
bool is_reduction(const Node& node);
// int, floor or ceil of a node's operand: rounding.cpp.
ExprPtr whole_of(Elements& g, const Node& n, const Indices& at, const std::string& how);
// The quotient ("//") or rest ("%") of an integer and a constant, rounded toward zero as C does;
// null for others.
ExprPtr toward_zero(const std::string& op, const ExprPtr& a, const ExprPtr& b);
// The quotient of a node's two operands, floored: n // d of integers and of reals that are
// integers.
ExprPtr floor_of_quotient(Elements& g, const Node& n, const Indices& at);

// Replaces composite operators by the plain ones that they stand for. Returns false after refusing.
bool open_composites(Graph& graph, Diagnostics& diagnostics);

// Dimension d of n, where negative ones count from the end.
inline int wrap(int64_t d, int n) { return static_cast<int>(d < 0 ? d + n : d); }

}  // namespace kw::spec
