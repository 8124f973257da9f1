#include "graph_run.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "graph_places.h"

namespace kw::fuzz {
namespace {

using spec::Node;
using spec::Value;

double floor_mod(double a, double b) { return a - b * std::floor(a / b); }

const std::map<std::string, double (*)(double)>& unary_functions() {
  static const std::map<std::string, double (*)(double)> table = {
      {"neg", [](double x) { return -x; }},
      {"abs", [](double x) { return std::fabs(x); }},
      {"exp", [](double x) { return std::exp(x); }},
      {"exp2", [](double x) { return std::exp2(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"relu", [](double x) { return x > 0 ? x : 0; }},
      {"logical_not", [](double x) { return double(x == 0); }},
      {"bitwise_not", [](double x) { return double(x == 0); }},
      {"to", [](double x) { return x; }},
  };
  return table;
}

const std::map<std::string, double (*)(double, double)>& binary_functions() {
  static const std::map<std::string, double (*)(double, double)> table = {
      {"add", [](double a, double b) { return a + b; }},
      {"sub", [](double a, double b) { return a - b; }},
      {"mul", [](double a, double b) { return a * b; }},
      {"div", [](double a, double b) { return a / b; }},
      {"floor_divide", [](double a, double b) { return std::floor(a / b); }},
      {"remainder", floor_mod},
      {"minimum", [](double a, double b) { return std::min(a, b); }},
      {"maximum", [](double a, double b) { return std::max(a, b); }},
      {"lt", [](double a, double b) { return double(a < b); }},
      {"le", [](double a, double b) { return double(a <= b); }},
      {"gt", [](double a, double b) { return double(a > b); }},
      {"ge", [](double a, double b) { return double(a >= b); }},
      {"eq", [](double a, double b) { return double(a == b); }},
      {"ne", [](double a, double b) { return double(a != b); }},
      {"bitwise_and", [](double a, double b) { return double(int64_t(a) & int64_t(b)); }},
      {"bitwise_or", [](double a, double b) { return double(int64_t(a) | int64_t(b)); }},
      {"bitwise_xor", [](double a, double b) { return double(int64_t(a) ^ int64_t(b)); }},
      {"bitwise_left_shift", [](double a, double b) { return double(int64_t(a) << int64_t(b)); }},
      {"bitwise_right_shift", [](double a, double b) { return double(int64_t(a) >> int64_t(b)); }},
      {"logical_and", [](double a, double b) { return double(a != 0 && b != 0); }},
      {"logical_or", [](double a, double b) { return double(a != 0 || b != 0); }},
  };
  return table;
}

}  // namespace

std::vector<int64_t> sources_of(const Node& n, const std::vector<Tensor>& done,
                                const std::vector<int64_t>& shape) {
  const Tensor& x = done[n.args[0].node];
  const std::vector<int64_t> stride = strides_of(x.shape);
  const auto wrap = [&](int64_t d) { return d < 0 ? d + x.rank() : d; };
  std::vector<Tensor> indices;
  std::vector<Places> places;
  if (n.op == "index")
    for (const Value& v : n.args[1].list) indices.push_back(done[v.node]);
  const size_t rest_rank = x.shape.size() - indices.size();
  const std::vector<int64_t> lead(shape.begin(), shape.end() - long(rest_rank));
  for (const Tensor& t : indices) places.emplace_back(lead, t.shape);
  std::vector<int64_t> at(shape.size()), out(size_t(element_count(shape)));
  for (size_t k = 0; k < out.size(); ++k) {
    int64_t rest = int64_t(k), from = 0;
    for (size_t d = at.size(); d-- > 0; rest /= shape[d]) at[d] = rest % shape[d];
    if (n.op == "transpose") {
      std::swap(at[wrap(n.args[1].integer)], at[wrap(n.args[2].integer)]);
      for (size_t d = 0; d < at.size(); ++d) from += at[d] * stride[d];
    } else if (n.op == "repeat_interleave") {
      at[n.args[2].integer] /= n.args[1].integer;
      for (size_t d = 0; d < at.size(); ++d) from += at[d] * stride[d];
    } else {
      int64_t flat = 0;
      for (size_t d = 0; d < lead.size(); ++d) flat = flat * lead[d] + at[d];
      for (size_t d = 0; d < indices.size(); ++d)
        from += int64_t(indices[d].values[places[d][flat]]) * stride[d];
      for (size_t d = 0; d < rest_rank; ++d)
        from += at[lead.size() + d] * stride[indices.size() + d];
    }
    out[k] = from;
  }
  return out;
}

namespace {

class Machine {
 public:
  Machine(const spec::Graph& graph, const std::map<std::string, Tensor>& arguments,
          const std::map<std::string, int64_t>& sizes, bool own_types, Undefined undefined)
      : graph_(graph), arguments_(arguments), own_types_(own_types), undefined_(undefined) {
    for (const auto& [name, n] : sizes) scope_.indices[name] = n;
  }

  std::vector<Tensor> every_node() {
    for (const Node& n : graph_.nodes) {
      Tensor t = compute(n);
      if (own_types_ && is_float(n.dtype))
        for (double& x : t.values) x = round_to(n.dtype, x);
      if (undefined_ == Undefined::zero)
        for (double& x : t.values)
          if (std::isnan(x)) x = n.op == "sub" ? -HUGE_VAL : 0;
      done_.push_back(std::move(t));
    }
    return std::move(done_);
  }

 private:
  std::vector<int64_t> shape_of(const Node& n) const {
    std::vector<int64_t> s;
    for (const spec::ExprPtr& d : n.shape) s.push_back(int64_t(spec::evaluate(d, scope_)));
    return s;
  }

  Tensor operand(const Value& v) const {
    if (v.kind == Value::Kind::node) return done_[v.node];
    Tensor t(Dtype::f64, {});
    t.values[0] = v.kind == Value::Kind::size ? spec::evaluate(v.size, scope_) : v.real;
    return t;
  }

  Tensor compute(const Node& n) const {
    Tensor out(Dtype::f64, shape_of(n));
    if (n.op == "argument") return arguments_.at(n.name);
    if (const auto f = unary_functions().find(n.op); f != unary_functions().end())
      pointwise(out, operand(n.args[0]), f->second);
    else if (const auto g = binary_functions().find(n.op); g != binary_functions().end())
      pointwise(out, operand(n.args[0]), operand(n.args[1]), g->second);
    else if (n.op == "matmul")
      matmul(out, done_[n.args[0].node], done_[n.args[1].node]);
    else if (n.op == "einsum")
      einsum(out, n);
    else if (n.op == "scaled_dot_product_attention")
      attention(out, n);
    else
      other(out, n);
    return out;
  }

  template <class F>
  static void pointwise(Tensor& out, const Tensor& a, F f) {
    for (size_t k = 0; k < out.values.size(); ++k) out.values[k] = f(a.values[k]);
  }

  template <class F>
  static void pointwise(Tensor& out, const Tensor& a, const Tensor& b, F f) {
    const Places pa(out.shape, a.shape), pb(out.shape, b.shape);
    for (size_t k = 0; k < out.values.size(); ++k)
      out.values[k] = f(a.values[pa[k]], b.values[pb[k]]);
  }

  static void choose(Tensor& out, const Tensor& c, const Tensor& yes, const Tensor& no) {
    const Places pc(out.shape, c.shape), py(out.shape, yes.shape), pn(out.shape, no.shape);
    for (size_t k = 0; k < out.values.size(); ++k)
      out.values[k] = c.values[pc[k]] != 0 ? yes.values[py[k]] : no.values[pn[k]];
  }

  void other(Tensor& out, const Node& n) const {
    const std::string& op = n.op;
    std::vector<double>& y = out.values;
    if (op == "where") {
      choose(out, operand(n.args[0]), operand(n.args[1]), operand(n.args[2]));
    } else if (op == "masked_fill") {
      choose(out, operand(n.args[1]), operand(n.args[2]), operand(n.args[0]));
    } else if (op == "clamp") {
      const double low = n.args[1].real, high = n.args[2].real;
      pointwise(out, operand(n.args[0]), [=](double x) { return std::clamp(x, low, high); });
    } else if (op == "arange") {
      for (size_t k = 0; k < y.size(); ++k) y[k] = double(k);
    } else if (op == "ones" || op == "zeros") {
      std::fill(y.begin(), y.end(), double(op == "ones"));
    } else if (op == "tril" || op == "triu") {
      triangle(out, n);
    } else if (op == "view" || op == "reshape" || op == "unsqueeze") {
      y = done_[n.args[0].node].values;
    } else if (op == "expand") {
      const Tensor& x = done_[n.args[0].node];
      const Places p(out.shape, x.shape);
      for (size_t k = 0; k < y.size(); ++k) y[k] = x.values[p[k]];
    } else if (op == "transpose" || op == "repeat_interleave" || op == "index") {
      rearrange(out, n);
    } else if (op == "softmax") {
      rows(out, done_[n.args[0].node], softmax_row);
    } else if (op == "amax" || op == "sum" || op == "logsumexp") {
      reduce(out, n);
    } else {
      throw std::runtime_error("no operator " + op);
    }
  }

  void triangle(Tensor& out, const Node& n) const {
    const Tensor& x = done_[n.args[0].node];
    const int64_t columns = out.shape.back(), height = out.shape[out.shape.size() - 2];
    for (int64_t k = 0; k < out.count(); ++k) {
      const int64_t distance = k % columns - k / columns % height;
      const bool kept =
          n.op == "tril" ? distance <= n.args[1].integer : distance >= n.args[1].integer;
      out.values[k] = kept ? x.values[k] : 0;
    }
  }

  void rearrange(Tensor& out, const Node& n) const {
    const std::vector<int64_t> from = sources_of(n, done_, out.shape);
    for (size_t k = 0; k < from.size(); ++k)
      out.values[k] = done_[n.args[0].node].values.at(from[k]);
  }

  using Row = void (*)(const double* in, double* out, int64_t length);

  static void softmax_row(const double* in, double* out, int64_t length) {
    const double top = *std::max_element(in, in + length);
    double sum = 0;
    for (int64_t j = 0; j < length; ++j) sum += out[j] = std::exp(in[j] - top);
    for (int64_t j = 0; j < length; ++j) out[j] /= sum;
  }

  static void rows(Tensor& out, const Tensor& x, Row f) {
    const int64_t length = x.shape.back();
    for (int64_t at = 0; at < x.count(); at += length) f(&x.values[at], &out.values[at], length);
  }

  void reduce(Tensor& out, const Node& n) const {
    const Tensor& x = done_[n.args[0].node];
    const int64_t length = x.shape.back();
    for (int64_t r = 0; r < out.count(); ++r) {
      const double* in = &x.values[r * length];
      double top = *std::max_element(in, in + length), sum = 0;
      if (n.op == "logsumexp" && top == -HUGE_VAL) {
        out.values[r] = top;
        continue;
      }
      for (int64_t j = 0; j < length; ++j) sum += n.op == "sum" ? in[j] : std::exp(in[j] - top);
      out.values[r] = n.op == "sum" ? sum : n.op == "amax" ? top : top + std::log(sum);
    }
  }

  static void matmul(Tensor& out, const Tensor& a, const Tensor& b) {
    const size_t rank = out.shape.size();
    const int64_t m = out.shape[rank - 2], n = out.shape[rank - 1], inner = a.shape.back();
    const auto lead = [](const Tensor& t) {
      return std::vector<int64_t>(t.shape.begin(), t.shape.end() - 2);
    };
    const Places pa(lead(out), lead(a)), pb(lead(out), lead(b));
    for (int64_t block = 0; block * m * n < out.count(); ++block) {
      const double *x = &a.values[pa[block] * m * inner], *y = &b.values[pb[block] * inner * n];
      for (int64_t i = 0; i < m; ++i) {
        double* row = &out.values[(block * m + i) * n];
        for (int64_t d = 0; d < inner; ++d)
          for (int64_t j = 0; j < n; ++j) row[j] += x[i * inner + d] * y[d * n + j];
      }
    }
  }

  void einsum(Tensor& out, const Node& n) const {
    const std::string& text = n.args[0].text;
    const size_t comma = text.find(','), arrow = text.find("->");
    const std::string names[2] = {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1)};
    const std::string result = text.substr(arrow + 2);
    const Tensor* x[2] = {&done_[n.args[1].list[0].node], &done_[n.args[1].list[1].node]};
    std::map<char, int64_t> extent, at;
    for (int o = 0; o < 2; ++o)
      for (size_t d = 0; d < names[o].size(); ++d) extent[names[o][d]] = x[o]->shape[d];
    char summed = 0;
    for (const auto& [c, length] : extent)
      if (result.find(c) == std::string::npos) summed = c;
    const auto place = [&](int o) {
      int64_t flat = 0;
      for (const char c : names[o]) flat = flat * extent[c] + at[c];
      return x[o]->values[flat];
    };
    for (int64_t k = 0; k < out.count(); ++k) {
      int64_t rest = k;
      for (size_t d = result.size(); d-- > 0; rest /= out.shape[d])
        at[result[d]] = rest % out.shape[d];
      for (at[summed] = 0; at[summed] < extent[summed]; ++at[summed])
        out.values[k] += place(0) * place(1);
    }
  }

  // As PyTorch documents it; a causal mask is aligned at the top left. Weights are rounded as they
  // are where the function's own error is asked for.
  void attention(Tensor& out, const Node& n) const {
    const Tensor &q = done_[n.args[0].node], &k = done_[n.args[1].node], &v = done_[n.args[2].node];
    const int64_t B = q.shape[0], H = q.shape[1], M = q.shape[2], D = q.shape[3], G = k.shape[1],
                  N = k.shape[2], V = v.shape[3];
    const Value& scale = n.arg(6, "scale");
    const double c = scale.kind == Value::Kind::real ? scale.real : 1 / std::sqrt(double(D));
    const bool causal = n.args[5].integer != 0, masked = n.args[3].kind == Value::Kind::node;
    const Tensor mask = masked ? done_[n.args[3].node] : Tensor(Dtype::f64, {});
    const bool keeps = masked && graph_.nodes[n.args[3].node].dtype == Dtype::boolean;
    const Places at_mask({B, H, M, N}, mask.shape);
    std::vector<double> s(N), p(N);
    for (int64_t row = 0; row < B * H * M; ++row) {
      const int64_t b = row / (H * M), h = row / M % H, i = row % M, g = b * G + h / (H / G);
      for (int64_t j = 0; j < N; ++j) {
        s[j] = 0;
        for (int64_t d = 0; d < D; ++d)
          s[j] += q.values[row * D + d] * k.values[(g * N + j) * D + d];
        s[j] *= c;
        const double m = mask.values[at_mask[row * N + j]];
        if (masked && !keeps) s[j] += m;
        if ((masked && keeps && m == 0) || (causal && j > i)) s[j] = -HUGE_VAL;
      }
      softmax_row(s.data(), p.data(), N);
      for (int64_t j = 0; j < N; ++j) {
        const double w = own_types_ ? round_to(n.dtype, p[j]) : p[j];
        for (int64_t d = 0; d < V; ++d)
          out.values[row * V + d] += w * v.values[(g * N + j) * V + d];
      }
    }
  }

  const spec::Graph& graph_;
  const std::map<std::string, Tensor>& arguments_;
  const bool own_types_;
  const Undefined undefined_;
  spec::Scope scope_;
  std::vector<Tensor> done_;
};

}  // namespace

std::vector<Tensor> every_node(const spec::Graph& graph,
                               const std::map<std::string, Tensor>& arguments,
                               const std::map<std::string, int64_t>& sizes, bool own_types,
                               Undefined undefined) {
  return Machine(graph, arguments, sizes, own_types, undefined).every_node();
}

std::vector<Tensor> run(const spec::Graph& graph, const std::map<std::string, Tensor>& arguments,
                        const std::map<std::string, int64_t>& sizes, bool own_types) {
  const std::vector<Tensor> nodes =
      every_node(graph, arguments, sizes, own_types, Undefined::as_it_is);
  std::vector<Tensor> out;
  for (const int n : graph.outputs) out.push_back(nodes[n]);
  return out;
}

}  // namespace kw::fuzz
