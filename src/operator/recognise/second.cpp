// A second output: the logarithms of the row sums, or the sums of the weights' columns.
//
// Both are recognised by what they mean: a reduction whose body is that of the first output's
// softmax, at the same indices.
#include <algorithm>
#include <optional>

#include "operator/expr/linear.h"
#include "operator/recognise/roles.h"

namespace kw::spec {
namespace {

// c[b, h, j] = sum over i of the softmax's element at b, h, i, j: how much each key was attended
// to. Of one softmax without a sink, of the op's own spelling.
bool sums_columns(Elements& elements, const Graph& graph, const Parts& parts, const Roles& roles,
                  const std::vector<std::string>& output) {
  if (parts.normaliser != Normaliser::softmax || parts.sink || parts.terms > 1) return false;
  const Node& node = graph.nodes[graph.outputs[1]];
  Indices at;
  ExprPtr row;
  for (const std::string& x : output) {
    const std::string& role = roles.index_names.at(x);
    const ExprPtr index = leaf(Kind::index, Type::integer, x);
    if (role == "i")
      row = index;
    else if (role != "d")
      at.push_back(index);
  }
  at.push_back(parts.key);
  if (static_cast<int>(at.size()) != node.rank() || graph.outputs.size() > 2) return false;
  const ExprPtr e = elements.element(graph.outputs[1], at);
  const int n = Elements::reduced(e);
  if (n < 0 || elements.reduction(n) != Reduction::sum ||
      !equal(elements.extent(n), elements.extents().at(row->name)))
    return false;
  const ExprPtr weight = elements.body(n, e->args, row);
  const int softmax = Elements::reduced(weight);
  return softmax >= 0 && elements.reduction(softmax) == Reduction::softmax &&
         mentions(weight, Kind::index, "j") &&
         equal(elements.extent(softmax), elements.extents().at("j")) &&
         equal(elements.body(softmax, weight->args, parts.key), parts.normalised);
}

// The output's indices but that of its columns, in the order in which this node has them: the
// output's own, where that fits, or another ([B, H, M] beside [B, M, H, D], as FlashAttention has
// it).
std::optional<std::vector<std::string>> order_of_rows(Elements& elements, const Node& node,
                                                      const Roles& roles,
                                                      std::vector<std::string> names) {
  std::erase_if(names, [&](const std::string& x) { return roles.index_names.at(x) == "d"; });
  const auto fits = [&] {
    for (size_t d = 0; d < names.size(); ++d)
      if (!equal(elements.extents().at(names[d]), node.shape[d])) return false;
    return true;
  };
  if (int(names.size()) != node.rank()) return std::nullopt;
  if (fits()) return names;
  std::sort(names.begin(), names.end());
  do {
    if (fits()) return names;
  } while (std::next_permutation(names.begin(), names.end()));
  return std::nullopt;
}

}  // namespace

bool second_output(Elements& elements, const Graph& graph, const Parts& parts, const Roles& roles,
                   const std::vector<std::string>& output, Form& form, Diagnostics& diagnostics) {
  const Node& node = graph.nodes[graph.outputs[1]];
  const auto refuse = [&] {
    diagnostics
        .error(
            "spec.not_attention", node.span,
            "the second output is neither the logsumexp of the scores, one for each row, nor the "
            "sum of each key's weights over the rows")
        .hint =
        "return torch.logsumexp(scores, dim=-1), p.sum(-2) of p = softmax(scores), or only "
        "the first output";
    return false;
  };
  if (sums_columns(elements, graph, parts, roles, output)) {
    form.outputs.push_back({"column_sums", "bhj", Rule::sum});
    return !elements.failed();
  }
  const std::optional<std::vector<std::string>> order =
      order_of_rows(elements, node, roles, output);
  if (!order || graph.outputs.size() > 2) return refuse();
  Indices at;
  for (const std::string& x : *order) at.push_back(leaf(Kind::index, Type::integer, x));
  const ExprPtr e = elements.element(graph.outputs[1], at);
  const int n = Elements::reduced(e);
  if (n < 0 || elements.reduction(n) != Reduction::logsumexp ||
      parts.normaliser != Normaliser::softmax)
    return refuse();
  // The same body as the softmax's, at the same indices, and as many logits.
  const Linear more = add(linear(elements.extent(n)), linear(elements.extents().at("j")), -1);
  const auto at_logit = [&](const ExprPtr& index) {
    return simplify_bounds(elements.body(n, e->args, index), {{"j", elements.extents().at("j")}});
  };
  if (!more.is_constant() || more.constant != (parts.sink ? 1 : 0)) return refuse();
  const bool behind = equal(at_logit(parts.key), parts.normalised);
  const ExprPtr one = integer(1);
  if (!behind && !(parts.sink && equal(at_logit(binary("+", parts.key, one)), parts.normalised)))
    return refuse();
  if (parts.sink && !equal(at_logit(behind ? elements.extents().at("j") : integer(0)), parts.sink))
    return refuse();
  form.outputs.push_back({"lse", "bhi", Rule::log_sum});
  std::vector<std::string> dims;
  for (const std::string& x : *order) dims.push_back(roles.index_names.at(x));
  if (dims.size() == 3 && dims != std::vector<std::string>{"b", "h", "i"})
    form.outputs.back().dims = std::move(dims);
  return !elements.failed();
}

}  // namespace kw::spec
