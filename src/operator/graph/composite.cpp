// Composite operators, opened into the operators that PyTorch's documentation defines them by.
// Norms are in norms.cpp.
#include <fmt/format.h>

#include <cmath>

#include "operator/graph/normalise.h"
#include "operator/graph/opener.h"

namespace kw::spec {
namespace {

int repeated_heads(Opener& o, int x, int64_t times) {
  std::vector<ExprPtr> shape = o.shape(x);
  const size_t head = shape.size() - 3;
  shape[head] = binary("*", shape[head], integer(times));
  return o.add("repeat_interleave", {node_value(x), whole(times), whole(static_cast<int>(head))},
               shape);
}

// softmax(q k^T * scale + mask) v; a causal mask is aligned at the top left.
bool open_attention(Opener& o, Diagnostics& diagnostics) {
  const Node& n = o.original();
  int q = n.args[0].node, k = n.args[1].node, v = n.args[2].node;
  const size_t rank = o.shape(q).size();
  if (rank < 3 || o.shape(k).size() != rank) {
    diagnostics.error("spec.operator", n.span,
                      "scaled_dot_product_attention needs q, k and v of three or four dimensions");
    return false;
  }
  const Value& gqa = n.arg(7, "enable_gqa");
  if (gqa.kind == Value::Kind::boolean && gqa.integer) {
    const ExprPtr heads = o.shape(q)[rank - 3], groups = o.shape(k)[rank - 3];
    const int64_t times = heads->integer / groups->integer;
    k = repeated_heads(o, k, times);
    v = repeated_heads(o, v, times);
  }
  std::vector<ExprPtr> transposed = o.shape(k);
  std::swap(transposed[rank - 1], transposed[rank - 2]);
  std::vector<ExprPtr> scores = o.shape(q);
  scores.back() = transposed.back();
  const int kt = o.add("transpose", {node_value(k), whole(-1), whole(-2)}, transposed);
  int s = o.add("matmul", {node_value(q), node_value(kt)}, scores);
  Value scale = n.arg(6, "scale");
  if (scale.kind == Value::Kind::none)
    scale = number(1 / std::sqrt(static_cast<double>(o.shape(q).back()->integer)));
  s = o.add("mul", {node_value(s), scale}, scores);
  const Value& causal = n.arg(5, "is_causal");
  const bool masks = (causal.kind == Value::Kind::boolean && causal.integer) ||
                     n.arg(3, "attn_mask").kind == Value::Kind::node;
  if (masks && scale.is_number() && scale.real <= 0) {
    diagnostics
        .error(
            "spec.operator", n.span,
            fmt::format("scaled_dot_product_attention with a mask and the scale {}: PyTorch's own "
                        "kernels give NaN where a mask drops keys and the scale is 0 or less",
                        scale.real))
        .hint = "scale the queries instead";
    return false;
  }
  if (causal.kind == Value::Kind::boolean && causal.integer) {
    const std::vector<ExprPtr> plane(scores.end() - 2, scores.end());
    const int ones = o.add("ones", {}, plane, Dtype::boolean);
    const int seen = o.add("tril", {node_value(ones)}, plane, Dtype::boolean);
    s = o.add("where", {node_value(seen), node_value(s), number(-HUGE_VAL)}, scores);
  }
  if (const Value mask = n.arg(3, "attn_mask"); mask.kind == Value::Kind::node) {
    s = o.is_boolean(mask.node) ? o.add("where", {mask, node_value(s), number(-HUGE_VAL)}, scores)
                                : o.add("add", {node_value(s), mask}, scores);
  }
  const int p = o.add("softmax", {node_value(s), whole(-1)}, scores);
  o.become("matmul", {node_value(p), node_value(v)});
  return true;
}

// beta * input + alpha * a b
void open_baddbmm(Opener& o, const char* product) {
  const Node& n = o.original();
  const Value beta = n.arg(3, "beta"), alpha = n.arg(4, "alpha");
  int s = o.add(product, {n.args[1], n.args[2]}, n.shape);
  if (alpha.is_number()) s = o.add("mul", {node_value(s), alpha}, n.shape);
  Value input = n.args[0];
  if (beta.is_number() && beta.real == 0) return o.become("mul", {node_value(s), number(1)});
  if (beta.is_number()) input = node_value(o.add("mul", {input, beta}, o.shape(input.node)));
  o.become("add", {node_value(s), input});
}

}  // namespace

bool open_composites(Graph& graph, Diagnostics& diagnostics) {
  const int count = static_cast<int>(graph.nodes.size());
  for (int n = 0; n < count; ++n) {
    const std::string op = graph.nodes[n].op;
    Opener opener(graph, n);
    if (op == "scaled_dot_product_attention" && !open_attention(opener, diagnostics)) return false;
    if (op == "baddbmm") open_baddbmm(opener, "bmm");
    if (op == "addmm") open_baddbmm(opener, "mm");
    if (!open_norm(opener, diagnostics)) return false;
  }
  return true;
}

}  // namespace kw::spec
