// Reductions over one dimension. A contraction is a sum of products: matmul, bmm and einsum are
// sums whose body is the product of the operands' elements.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "operator/graph/normalise.h"

namespace kw::spec {
namespace {

bool is_matmul(const Node& n) { return n.op == "matmul" || n.op == "bmm" || n.op == "mm"; }

struct Einsum {
  std::vector<std::string> operands;
  std::string result, reduced;
};

// Null-like (no operands) for what is not read: more than two operands, ellipses.
Einsum parse_einsum(const Node& n) {
  Einsum out;
  std::string text;
  for (char c : n.args[0].text)
    if (c != ' ') text += c;
  const size_t arrow = text.find("->");
  if (arrow == std::string::npos || text.find('.') != std::string::npos) return out;
  const std::string left = text.substr(0, arrow);
  out.result = text.substr(arrow + 2);
  const size_t comma = left.find(',');
  if (comma == std::string::npos || left.find(',', comma + 1) != std::string::npos) return out;
  out.operands = {left.substr(0, comma), left.substr(comma + 1)};
  std::set<char> letters(left.begin(), left.end());
  letters.erase(',');
  for (char c : letters)
    if (out.result.find(c) == std::string::npos) out.reduced += c;
  return out;
}

std::vector<ExprPtr> matmul_factors(Elements& g, const Node& n, const Indices& at,
                                    const ExprPtr& r) {
  const int ranks[2] = {g.node(n.args[0].node).rank(), g.node(n.args[1].node).rank()};
  if (ranks[0] < 2 || ranks[1] < 2)
    return {g.refuse(n, "a product of a matrix with a vector is not supported")};
  Indices left = at, right = at;
  left.back() = r;
  right[right.size() - 2] = r;
  return {g.broadcast(n.args[0], left), g.broadcast(n.args[1], right)};
}

std::vector<ExprPtr> einsum_factors(Elements& g, const Node& n, const Indices& at,
                                    const ExprPtr& r) {
  const Einsum e = parse_einsum(n);
  if (e.operands.empty() || e.reduced.size() != 1)
    return {g.refuse(
        n, fmt::format("einsum \"{}\" is not supported: it needs two operands, an explicit "
                       "result and one summed letter",
                       n.args[0].text))};
  std::vector<ExprPtr> factors;
  for (size_t o = 0; o < 2; ++o) {
    Indices own;
    for (char c : e.operands[o]) {
      const size_t place = e.result.find(c);
      own.push_back(place == std::string::npos ? r : at[place]);
    }
    factors.push_back(g.broadcast(n.args[1].list[o], own));
  }
  return factors;
}

// The one reduced dimension of a sum, max, softmax or logsumexp; -1 when there are several.
int dimension(const Elements& g, const Node& n) {
  const int rank = g.node(n.args[0].node).rank();
  const Value& dim = n.arg(1, "dim");
  if (dim.kind == Value::Kind::list)
    return dim.list.size() == 1 ? wrap(dim.list[0].integer, rank) : -1;
  return dim.is_number() ? wrap(dim.integer, rank) : -1;
}

bool keeps_dimension(const Elements& g, const Node& n) {
  return n.rank() == g.node(n.args[0].node).rank();
}

}  // namespace

bool is_reduction(const Node& n) {
  static const std::set<std::string_view> names = {"matmul", "bmm",     "mm",       "einsum",
                                                   "sum",    "softmax", "_softmax", "_safe_softmax",
                                                   "amax",   "max",     "logsumexp"};
  return names.count(n.op) &&
         !(n.op == "max" && n.args.size() > 1 && n.args[1].kind == Value::Kind::node);
}

Reduction Elements::reduction(int number) const {
  const std::string& op = node(number).op;
  if (op == "amax" || op == "max") return Reduction::max;
  if (op == "logsumexp") return Reduction::logsumexp;
  if (op.find("softmax") != std::string::npos) return Reduction::softmax;
  return Reduction::sum;
}

ExprPtr Elements::body(int number, const Indices& at, const ExprPtr& r) {
  const std::vector<ExprPtr> of = factors(number, at, r);
  return of.size() == 2 ? binary("*", of[0], of[1]) : of[0];
}

std::vector<ExprPtr> Elements::factors(int number, const Indices& at, const ExprPtr& r) {
  const Node& n = node(number);
  if (is_matmul(n)) return matmul_factors(*this, n, at, r);
  if (n.op == "einsum") return einsum_factors(*this, n, at, r);
  const int d = dimension(*this, n);
  if (d < 0)
    return {refuse(n, fmt::format("aten.{} over several dimensions is not supported", n.op))};
  Indices own = at;
  if (reduction(number) == Reduction::softmax || keeps_dimension(*this, n))
    own[d] = r;
  else
    own.insert(own.begin() + d, r);
  return {element(n.args[0].node, own)};
}

ExprPtr Elements::extent(int number) {
  const Node& n = node(number);
  if (is_matmul(n)) return node(n.args[0].node).shape.back();
  if (n.op == "einsum") {
    const Einsum e = parse_einsum(n);
    for (size_t o = 0; o < e.operands.size(); ++o) {
      const size_t place = e.operands[o].find(e.reduced);
      if (e.reduced.size() == 1 && place != std::string::npos)
        return node(n.args[1].list[o].node).shape[place];
    }
    return integer(1);  // body() refuses it
  }
  const int d = dimension(*this, n);
  return d < 0 ? integer(1) : node(n.args[0].node).shape[d];
}

}  // namespace kw::spec
