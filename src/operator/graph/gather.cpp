// Gathers: an index is itself an element of another tensor. Indices are taken to be in range and
// not negative; the fp64 goldens would show otherwise.
#include "operator/graph/normalise.h"

namespace kw::spec {
namespace {

// x[:, i, ...]: index.Tensor(x, [None, i]). Adjacent index tensors broadcast together and take the
// place of the dimensions that they index.
ExprPtr index_tensor(Elements& g, const Node& n, const Indices& at) {
  const Node& x = g.node(n.args[0].node);
  const std::vector<Value>& list = n.args[1].list;
  int first = -1, last = -1, rank = 0;
  for (int d = 0; d < static_cast<int>(list.size()); ++d) {
    if (list[d].kind != Value::Kind::node) continue;
    const Node& i = g.node(list[d].node);
    if (i.dtype == Dtype::boolean)
      return g.refuse(
          n, "indexing with a boolean mask has a data-dependent shape, which is not supported",
          "keep all keys and mask the scores");
    if (first < 0) first = d;
    if (last >= 0 && last != d - 1)
      return g.refuse(n, "index tensors on dimensions that are not adjacent are not supported");
    last = d;
    rank = std::max(rank, i.rank());
  }
  const Indices inner(at.begin() + first, at.begin() + first + rank);
  Indices out(at.begin(), at.begin() + first);
  for (int d = first; d <= last; ++d) out.push_back(g.broadcast(list[d], inner));
  out.insert(out.end(), at.begin() + first + rank, at.end());
  if (static_cast<int>(out.size()) != x.rank())
    return g.refuse(n, "this indexing is not supported");
  return g.element(n.args[0].node, out);
}

ExprPtr index_select(Elements& g, const Node& n, const Indices& at) {
  const int d = wrap(n.args[1].integer, n.rank());
  Indices out = at;
  out[d] = g.element(n.args[2].node, {at[d]});
  return g.element(n.args[0].node, out);
}

ExprPtr gather(Elements& g, const Node& n, const Indices& at) {
  const int d = wrap(n.args[1].integer, n.rank());
  Indices out = at;
  out[d] = g.element(n.args[2].node, at);
  return g.element(n.args[0].node, out);
}

ExprPtr embedding(Elements& g, const Node& n, const Indices& at) {
  const Indices inner(at.begin(), at.end() - 1);
  return g.element(n.args[0].node, {g.element(n.args[1].node, inner), at.back()});
}

}  // namespace

const std::map<std::string_view, ElementOf>& gather_operators() {
  static const std::map<std::string_view, ElementOf> table = {{"index", index_tensor},
                                                              {"index_select", index_select},
                                                              {"gather", gather},
                                                              {"embedding", embedding}};
  return table;
}

}  // namespace kw::spec
