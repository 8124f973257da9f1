#include "graph_gradients.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "graph_places.h"
#include "graph_run.h"

namespace kw::fuzz {
namespace {

using spec::Node;
using spec::Value;

double sign(double x) { return double(x > 0) - double(x < 0); }
double floor_quotient(double a, double b) { return std::floor(a / b); }

// What a result changes by with its operand x; y is the result.
using Slope = double (*)(double x, double y);
const std::map<std::string, Slope>& unary_slopes() {
  static const std::map<std::string, Slope> table = {
      {"neg", [](double, double) { return -1.0; }},
      {"abs", [](double x, double) { return sign(x); }},
      {"exp", [](double, double y) { return y; }},
      {"exp2", [](double, double y) { return y * std::log(2.0); }},
      {"tanh", [](double, double y) { return 1 - y * y; }},
      {"sigmoid", [](double, double y) { return y * (1 - y); }},
      {"relu", [](double x, double) { return double(x > 0); }},
      {"to", [](double, double) { return 1.0; }},
  };
  return table;
}

// The same for either of two operands. Of two that are equal each is half of the larger.
struct Slopes {
  double (*of_first)(double a, double b);
  double (*of_second)(double a, double b);
};
const std::map<std::string, Slopes>& binary_slopes() {
  const auto less = [](double a, double b) { return a < b ? 1.0 : a == b ? 0.5 : 0.0; };
  const auto greater = [](double a, double b) { return a > b ? 1.0 : a == b ? 0.5 : 0.0; };
  const auto one = [](double, double) { return 1.0; };
  static const std::map<std::string, Slopes> table = {
      {"add", {one, one}},
      {"sub", {one, [](double, double) { return -1.0; }}},
      {"mul", {[](double, double b) { return b; }, [](double a, double) { return a; }}},
      {"div",
       {[](double, double b) { return 1 / b; }, [](double a, double b) { return -a / (b * b); }}},
      {"remainder", {one, [](double a, double b) { return -floor_quotient(a, b); }}},
      {"minimum", {less, greater}},
      {"maximum", {greater, less}},
  };
  return table;
}

class Backwards {
 public:
  Backwards(const spec::Graph& graph, std::vector<Tensor> values, bool own_types)
      : graph_(graph), values_(std::move(values)), own_types_(own_types) {
    gradients_.resize(values_.size());
    for (const Node& n : graph.nodes) {
      const auto needs = [&](const Value& v) {
        return v.kind == Value::Kind::node && needed_[size_t(v.node)];
      };
      bool any =
          n.op == "argument" ? n.rank() > 0 : std::any_of(n.args.begin(), n.args.end(), needs);
      for (const Value& v : n.args) any |= std::any_of(v.list.begin(), v.list.end(), needs);
      needed_.push_back(any && is_float(n.dtype));
    }
  }

  std::map<std::string, Tensor> run(const std::vector<Tensor>& of_outputs) {
    for (size_t n = 0; n < of_outputs.size(); ++n) add(graph_.outputs[n], of_outputs[n].values);
    std::map<std::string, Tensor> out;
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      if (!needed_[n]) continue;
      const Node& node = graph_.nodes[n];
      Tensor& g = of(int(n));
      if (own_types_)
        for (double& x : g.values) x = round_to(node.dtype, x);
      if (node.op == "argument")
        out[node.name] = g;
      else
        turn(node, values_[n], g);
    }
    return out;
  }

 private:
  bool needs(const Value& v) const { return v.kind == Value::Kind::node && needed_[v.node]; }

  Tensor& of(int n) {
    auto& g = gradients_[size_t(n)];
    if (g.values.empty() || g.shape != values_[n].shape) g = Tensor(Dtype::f64, values_[n].shape);
    return g;
  }
  void add(int n, const std::vector<double>& share) {
    Tensor& g = of(n);
    for (size_t k = 0; k < share.size(); ++k) g.values[k] += share[k];
  }

  // A share of a gradient. What is not changed has no share in anything, not even in infinities;
  // where a row has no key, what is undefined is none either.
  static double share(double gradient, double slope) {
    const double x = gradient == 0 ? 0 : gradient * slope;
    return std::isfinite(x) ? x : 0;
  }

  double number(const Value& v, const Places* at, size_t k) const {
    if (v.kind == Value::Kind::node) return values_[v.node].values[(*at)[k]];
    if (v.kind == Value::Kind::size) throw std::runtime_error("no gradient beside a size");
    return v.real;
  }

  // Each element of a result, to the operand's element that it is of.
  template <class F>
  void spread(const Tensor& g, const Value& operand, F slope) {
    if (!needs(operand)) return;
    Tensor& to = of(operand.node);
    const Places at(g.shape, to.shape);
    for (size_t k = 0; k < g.values.size(); ++k) to.values[at[k]] += share(g.values[k], slope(k));
  }

  void turn(const Node& n, const Tensor& y, const Tensor& g) {
    const std::string& op = n.op;
    if (const auto f = unary_slopes().find(op); f != unary_slopes().end()) {
      const Tensor& x = values_[n.args[0].node];
      spread(g, n.args[0], [&](size_t k) { return f->second(x.values[k], y.values[k]); });
    } else if (const auto two = binary_slopes().find(op); two != binary_slopes().end()) {
      turn_two(n, g, two->second);
    } else if (op == "where" || op == "masked_fill") {
      const bool where = op == "where";
      const Tensor& c = values_[n.args[where ? 0 : 1].node];
      const Places at(g.shape, c.shape);
      spread(g, n.args[where ? 1 : 2], [&](size_t k) { return double(c.values[at[k]] != 0); });
      spread(g, n.args[where ? 2 : 0], [&](size_t k) { return double(c.values[at[k]] == 0); });
    } else if (op == "clamp") {
      const Tensor& x = values_[n.args[0].node];
      spread(g, n.args[0], [&](size_t k) {
        return double(x.values[k] >= n.args[1].real && x.values[k] <= n.args[2].real);
      });
    } else if (op == "view" || op == "reshape" || op == "unsqueeze") {
      add(n.args[0].node, g.values);
    } else if (op == "expand") {
      spread(g, n.args[0], [](size_t) { return 1.0; });
    } else if (op == "transpose" || op == "repeat_interleave" || op == "index") {
      const std::vector<int64_t> from = sources_of(n, values_, g.shape);
      Tensor& to = of(n.args[0].node);
      for (size_t k = 0; k < from.size(); ++k) to.values[from[k]] += g.values[k];
    } else if (op == "softmax") {
      turn_softmax(n.args[0].node, y, g);
    } else if (op == "amax" || op == "sum" || op == "logsumexp") {
      turn_reduction(n, y, g);
    } else if (op == "matmul") {
      turn_matmul(n.args[0].node, n.args[1].node, g);
    } else if (op == "einsum") {
      turn_einsum(n, g);
    } else if (op == "scaled_dot_product_attention") {
      turn_attention(n, g);
    } else if (!is_constant_almost_everywhere(op)) {
      throw std::runtime_error("no gradient of operator " + op);
    }
  }

  static bool is_constant_almost_everywhere(const std::string& op) { return op == "floor_divide"; }

  void turn_two(const Node& n, const Tensor& g, const Slopes& slopes) {
    std::vector<Places> at;
    for (const Value& v : n.args)
      at.emplace_back(g.shape,
                      v.kind == Value::Kind::node ? values_[v.node].shape : std::vector<int64_t>{});
    const auto numbers = [&](double (*f)(double, double)) {
      return [&, f](size_t k) {
        return f(number(n.args[0], &at[0], k), number(n.args[1], &at[1], k));
      };
    };
    spread(g, n.args[0], numbers(slopes.of_first));
    spread(g, n.args[1], numbers(slopes.of_second));
  }

  void turn_softmax(int x, const Tensor& y, const Tensor& g) {
    const int64_t length = y.shape.back();
    Tensor& to = of(x);
    for (int64_t at = 0; at < y.count(); at += length) {
      double dot = 0;
      for (int64_t j = at; j < at + length; ++j) dot += share(g.values[j], y.values[j]);
      for (int64_t j = at; j < at + length; ++j)
        to.values[j] += share(g.values[j] - dot, y.values[j]);
    }
  }

  // Of the largest of a row those that are equal have a part each.
  void turn_reduction(const Node& n, const Tensor& y, const Tensor& g) {
    const Tensor& x = values_[n.args[0].node];
    Tensor& to = of(n.args[0].node);
    const int64_t length = x.shape.back();
    for (int64_t r = 0; r < y.count(); ++r) {
      const double* in = &x.values[r * length];
      const auto ties = double(std::count(in, in + length, y.values[r]));
      for (int64_t j = 0; j < length; ++j) {
        const double slope = n.op == "sum"    ? 1
                             : n.op == "amax" ? double(in[j] == y.values[r]) / ties
                                              : std::exp(in[j] - y.values[r]);
        to.values[r * length + j] += share(g.values[r], slope);
      }
    }
  }

  void turn_matmul(int left, int right, const Tensor& g) {
    const Tensor &a = values_[left], &b = values_[right];
    const int64_t m = g.shape[g.shape.size() - 2], columns = g.shape.back(), inner = a.shape.back();
    const auto lead = [](const Tensor& t) {
      return std::vector<int64_t>(t.shape.begin(), t.shape.end() - 2);
    };
    const Places pa(lead(g), lead(a)), pb(lead(g), lead(b));
    Tensor &da = of(left), &db = of(right);
    for (int64_t block = 0; block * m * columns < g.count(); ++block)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t d = 0; d < inner; ++d) {
          const int64_t at = (pa[block] * m + i) * inner + d;
          const double x = a.values[at];
          const double *row = &g.values[(block * m + i) * columns],
                       *y = &b.values[(pb[block] * inner + d) * columns];
          double *dy = &db.values[(pb[block] * inner + d) * columns], dot = 0;
          for (int64_t j = 0; j < columns; ++j) {
            dot += row[j] * y[j];
            dy[j] += row[j] * x;
          }
          da.values[at] += dot;
        }
  }

  void turn_einsum(const Node& n, const Tensor& g) {
    const std::string& text = n.args[0].text;
    const size_t comma = text.find(','), arrow = text.find("->");
    const std::string names[2] = {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1)};
    const std::string result = text.substr(arrow + 2);
    const int operands[2] = {n.args[1].list[0].node, n.args[1].list[1].node};
    std::map<char, int64_t> extent, at;
    for (int o = 0; o < 2; ++o)
      for (size_t d = 0; d < names[o].size(); ++d)
        extent[names[o][d]] = values_[operands[o]].shape[d];
    std::string order = result;  // and behind it what is summed over
    for (const auto& [c, length] : extent)
      if (result.find(c) == std::string::npos) order += c;
    const auto place = [&](const std::string& indices) {
      int64_t flat = 0;
      for (const char c : indices) flat = flat * extent[c] + at[c];
      return flat;
    };
    int64_t count = 1;
    for (const char c : order) count *= extent[c];
    for (int64_t k = 0; k < count; ++k) {
      int64_t rest = k;
      for (size_t d = order.size(); d-- > 0; rest /= extent[order[d]])
        at[order[d]] = rest % extent[order[d]];
      const int64_t x = place(names[0]), y = place(names[1]);
      const double of_result = g.values[place(result)];
      of(operands[0]).values[x] += of_result * values_[operands[1]].values[y];
      of(operands[1]).values[y] += of_result * values_[operands[0]].values[x];
    }
  }

  // Weights and gradients of scores are rounded as they are where the function's own error is asked
  // for.
  void turn_attention(const Node& n, const Tensor& g) {
    const int nodes[3] = {n.args[0].node, n.args[1].node, n.args[2].node};
    const Tensor &q = values_[nodes[0]], &k = values_[nodes[1]], &v = values_[nodes[2]];
    const int64_t H = q.shape[1], M = q.shape[2], D = q.shape[3], G = k.shape[1], N = k.shape[2],
                  V = v.shape[3];
    const Value& scale = n.arg(6, "scale");
    const double c = scale.kind == Value::Kind::real ? scale.real : 1 / std::sqrt(double(D));
    const bool causal = n.args[5].integer != 0, masked = n.args[3].kind == Value::Kind::node;
    const Tensor mask = masked ? values_[n.args[3].node] : Tensor(Dtype::f64, {});
    const bool keeps = masked && graph_.nodes[n.args[3].node].dtype == Dtype::boolean;
    const Places at_mask({q.shape[0], H, M, N}, mask.shape);
    const bool of_mask = masked && needed_[n.args[3].node];
    const auto own = [&](double x) { return own_types_ ? round_to(n.dtype, x) : x; };
    std::vector<double> s(N), p(N), dp(N);
    for (int64_t row = 0; row < q.count() / D; ++row) {
      const int64_t h = row / M % H, i = row % M, group = row / (H * M) * G + h / (H / G);
      const double *x = &q.values[row * D], *of_row = &g.values[row * V];
      double top = -HUGE_VAL, sum = 0, delta = 0;
      for (int64_t j = 0; j < N; ++j) {
        const double* y = &k.values[(group * N + j) * D];
        s[j] = c * std::inner_product(x, x + D, y, 0.0);
        const double m = mask.values[at_mask[size_t(row * N + j)]];
        if (masked && !keeps) s[j] += m;
        if ((masked && keeps && m == 0) || (causal && j > i)) s[j] = -HUGE_VAL;
        top = std::max(top, s[j]);
        dp[j] = std::inner_product(of_row, of_row + V, &v.values[(group * N + j) * V], 0.0);
      }
      if (top == -HUGE_VAL) continue;
      for (int64_t j = 0; j < N; ++j) sum += p[j] = std::exp(s[j] - top);
      for (int64_t j = 0; j < N; ++j) delta += (p[j] /= sum) * dp[j];
      for (int64_t j = 0; j < N; ++j) {
        const double ds = p[j] * (dp[j] - delta);
        const int64_t at = group * N + j;
        for (int64_t d = 0; d < D; ++d) {
          of(nodes[0]).values[row * D + d] += c * own(ds) * k.values[at * D + d];
          of(nodes[1]).values[at * D + d] += c * own(ds) * x[d];
        }
        for (int64_t d = 0; d < V; ++d) of(nodes[2]).values[at * V + d] += own(p[j]) * of_row[d];
        if (of_mask && !keeps) of(n.args[3].node).values[at_mask[size_t(row * N + j)]] += ds;
      }
    }
  }

  const spec::Graph& graph_;
  const std::vector<Tensor> values_;
  const bool own_types_;
  std::vector<bool> needed_;
  std::vector<Tensor> gradients_;
};

}  // namespace

std::map<std::string, Tensor> gradients(const spec::Graph& graph,
                                        const std::map<std::string, Tensor>& arguments,
                                        const std::map<std::string, int64_t>& sizes,
                                        const std::vector<Tensor>& of_outputs, bool own_types) {
  return Backwards(graph, every_node(graph, arguments, sizes, own_types, Undefined::zero),
                   own_types)
      .run(of_outputs);
}

}  // namespace kw::fuzz
