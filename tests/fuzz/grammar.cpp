// The function as a whole: its sizes, its arguments, the product, what makes weights of scores, and
// the order of dimensions. Its mask and its score map have files of their own.
#include "grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "grammar_writer.h"

namespace kw::fuzz {

Function Writer::write() {
  sizes();
  operands();
  if (f_.heads == "sdpa" || (f_.heads == "plain" && dice_.once_in(5)))
    whole_attention();
  else
    in_parts();
  finish();
  return std::move(f_);
}

// ---- sizes and arguments

void Writer::sizes() {
  f_.B = dice_.between(1, 2);
  f_.G = dice_.between(1, 2);
  f_.H = f_.G * dice_.one_of<int64_t>({1, 1, 2, 3});
  f_.V = 16 << dice_.once_in(8);
  f_.D = f_.V == 16 ? 16 : 96;
  f_.M = dice_.one_of<int64_t>({1, 5, 17, 40, 63, 64, 65, 66, 70});
  f_.N = dice_.one_of<int64_t>({1, 2, 15, 16, 17, 31, 32, 33, 40, 47, 50, 64, 70});
  if (gradients_) {
    f_.V = f_.D = 64;
    f_.M = dice_.one_of<int64_t>({1, 5, 63, 64, 65, 130});
    f_.N = dice_.one_of<int64_t>({1, 17, 64, 65, 127, 128, 129, 150});
  }
  f_.rows_first = dice_.once_in(3);
  if (f_.G == 1 && f_.H > 1)
    f_.heads = dice_.one_of({"broadcast", "repeat", "expand", "sdpa", "own dimension"});
  else if (f_.G == f_.H)
    f_.heads = f_.G == 1 && dice_.once_in(3) ? "absent" : "plain";
  else
    f_.heads = dice_.one_of({"repeat", "expand", "sdpa", "own dimension"});
  f_.graph.name = "attention";
  f_.graph.dtype = dice_.once_in(5) ? Dtype::f16 : Dtype::bf16;
  g_.graph.name = f_.graph.name;
  g_.graph.dtype = f_.graph.dtype;
}

int Writer::argument(const std::string& name, Dtype t, const Shape& shape, const Draw& draw,
                     const std::string& example) {
  const auto found = arguments_.find(name);
  if (found != arguments_.end()) return found->second;
  Draw d = draw;
  d.stream = arguments_.size();
  f_.draws[name] = d;
  f_.example += fmt::format("    {} = {}\n", name, example);
  return arguments_[name] = g_.argument(name, t, shape);
}

int Writer::operand(const std::string& name, const ExprPtr& heads, const ExprPtr& rows) {
  const int64_t length = name == "q" ? 48 : 80;
  Shape shape = {B_, heads, rows, constant(name == "v" ? f_.V : f_.D)};
  std::vector<int64_t> example = {2, heads->integer, length, shape[3]->integer};
  if (f_.rows_first) std::swap(shape[1], shape[2]), std::swap(example[1], example[2]);
  if (f_.heads == "absent") shape.erase(shape.begin() + 1), example.erase(example.begin() + 1);
  return argument(name, f_.graph.dtype, shape, {Draw::Kind::normal, 0, 1.0},
                  fmt::format("torch.randn({}, dtype=torch.{})", fmt::join(example, ", "),
                              f_.graph.dtype == Dtype::f16 ? "float16" : "bfloat16"));
}

// Arguments come first in a graph, so all that may be used are made here, and which.
void Writer::operands() {
  if (f_.heads == "absent") {
    f_.rows_first = false;
    score_rank_ = 3;
  }
  q_ = operand("q", constant(f_.H), M_);
  k_ = operand("k", constant(f_.G), N_);
  v_ = operand("v", constant(f_.G), N_);
  const int rows = f_.rows_first || f_.heads == "absent" ? 1 : 2;
  f_.prelude = fmt::format("B, M, N = q.shape[0], q.shape[{}], k.shape[{}]", rows, rows);
  choose_score();
  if (gradients_) choose_learned();
  choose_mask();
  i_ = g_.unsqueeze(g_.arange(M_), 1);
  j_ = dice_.once_in(2) ? g_.arange(N_) : g_.unsqueeze(g_.arange(N_), 0);
}

Draw Writer::lengths() const { return {Draw::Kind::integer, 0, 1, 0, f_.N + 3}; }

int Writer::per_batch(const std::string& name) {
  return argument(name, Dtype::i32, {B_}, lengths(), "torch.tensor([17, 60], dtype=torch.int32)");
}
int Writer::per_head(const std::string& name) {
  return argument(name, Dtype::i32, {constant(f_.H)}, lengths(),
                  fmt::format("torch.arange(1, {}, dtype=torch.int32) * 7", f_.H + 1));
}
int Writer::real_per_head(const std::string& name, double scale) {
  return argument(name, Dtype::f32, {constant(f_.H)}, {Draw::Kind::uniform, 0, scale},
                  fmt::format("torch.rand({}) * {}", f_.H, scale));
}
int Writer::number(const std::string& name, double value) {
  const int n = argument(name, Dtype::f32, {}, {Draw::Kind::constant, 0, 1, 0, 0, value},
                         fmt::format("{}", value));
  for (spec::Argument& a : g_.graph.arguments)
    if (a.name == name) a.value = value;
  return n;
}
int Writer::whole_number(const std::string& name, int64_t value) {
  const int n = argument(name, Dtype::i32, {}, {Draw::Kind::constant, 0, 1, 0, 0, double(value)},
                         fmt::format("{}", value));
  for (spec::Argument& a : g_.graph.arguments)
    if (a.name == name) a.value = double(value);
  return n;
}

// A vector over batch or heads, as it broadcasts against the scores.
int Writer::over_batch(int x) {
  Shape s(static_cast<size_t>(score_rank_), constant(1));
  s[0] = B_;
  return g_.view("view", x, s);
}
int Writer::over_heads(int x) {
  if (score_rank_ == 5)
    return g_.view("view", x, {constant(f_.G), constant(f_.H / f_.G), constant(1), constant(1)});
  return g_.view("view", x, {constant(f_.H), constant(1), constant(1)});  // without heads, H is 1
}

// ---- the function

int Writer::heads_before_rows(int x) { return f_.rows_first ? g_.transpose(x, 1, 2) : x; }

// A head of k and v for each of q.
int Writer::shared(int x, const ExprPtr& rows) {
  const int64_t times = f_.H / f_.G;
  if (f_.heads == "repeat") return g_.repeat_interleave(x, times, 1);
  const ExprPtr columns = g_.shape(x).back();
  const Shape split = {B_, constant(f_.G), constant(times), rows, columns};
  return g_.view("reshape", g_.view("expand", g_.unsqueeze(x, 2), split),
                 {B_, constant(f_.H), rows, columns});
}

int Writer::masked(int s) {
  if (!mask_) return s;
  const int keep = mask_();
  switch (dice_.below(8)) {
    case 0:
    case 1:
    case 2:
      return g_.where(keep, node(s), fuzz::number(-HUGE_VAL));
    case 3:
      return g_.binary("add", s,
                       g_.masked_fill(g_.where(keep, fuzz::number(0), fuzz::number(0)),
                                      g_.unary("logical_not", keep), -HUGE_VAL));
    case 4:
      return g_.masked_fill(s, g_.unary("bitwise_not", keep), -30000);
    default:
      return g_.masked_fill(s, g_.unary("logical_not", keep), -HUGE_VAL);
  }
}

int Writer::product(int q, int k) {
  const int64_t place = dice_.below(6);
  const double scale = 1 / std::sqrt(double(f_.D));
  if (place == 0 && dice_.once_in(2))
    k = g_.binary("mul", k, scale);
  else if (place == 0)
    q = g_.binary("mul", q, scale);
  int s = -1;
  if (score_rank_ == 4 && g_.shape(k)[1]->integer == f_.H && dice_.once_in(4))
    s = g_.einsum("bhid,bhjd->bhij", q, k, {B_, constant(f_.H), M_, N_});
  else
    s = g_.matmul(q, g_.transpose(k, -1, -2));
  if (dice_.once_in(2)) s = g_.to(s, Dtype::f32);
  if (place == 1) return g_.binary("div", s, std::sqrt(double(f_.D)));
  if (place == 2) return g_.binary("mul", s, 0.3);
  if (place == 0 || place == 5) return s;
  return g_.binary("mul", s, scale);
}

int Writer::normalised(int s, int v) {
  const Dtype t = g_.dtype(v);
  const auto weighted = [&](int p) { return g_.matmul(g_.dtype(p) == t ? p : g_.to(p, t), v); };
  if (sinks_ >= 0) {
    f_.normaliser = "sinks";
    const int top = g_.reduce("amax", s, true), e = g_.unary("exp", g_.binary("sub", s, top));
    const int sink = g_.unary("exp", g_.binary("sub", over_heads(sinks_), top));
    return weighted(g_.binary("div", e, g_.binary("add", g_.reduce("sum", e, true), sink)));
  }
  if (gradients_ && dice_.once_in(6)) {
    f_.normaliser = "weights alone";
    return weighted(g_.unary("sigmoid", g_.binary("sub", s, 2.0)));
  }
  switch (dice_.below(9)) {
    case 0: {
      f_.normaliser = "written out";
      const int e = g_.unary("exp", g_.binary("sub", s, g_.reduce("amax", s, true)));
      return weighted(g_.binary("div", e, g_.reduce("sum", e, true)));
    }
    case 1: {
      f_.normaliser = "divided last";
      const int e = g_.unary("exp", g_.binary("sub", s, g_.reduce("amax", s, true)));
      const int sum = g_.reduce("sum", e, true);
      const int o = weighted(e);
      return g_.to(g_.binary("div", o, sum), t);
    }
    case 3: {
      f_.normaliser = "powers of two";
      const int x =
          g_.binary("mul", g_.binary("sub", s, g_.reduce("amax", s, true)), 1 / std::log(2.0));
      const int e = g_.unary("exp2", x);
      return weighted(g_.binary("div", e, g_.reduce("sum", e, true)));
    }
    case 2:
      f_.normaliser = "minus logsumexp";
      return weighted(g_.unary("exp", g_.binary("sub", s, g_.reduce("logsumexp", s, true))));
    default:
      f_.normaliser = "softmax";
      return weighted(g_.softmax(s, dice_.once_in(2)));
  }
}

void Writer::in_parts() {
  if (f_.heads == "sdpa") f_.heads = "repeat";
  if (f_.heads == "own dimension") score_rank_ = 5;
  const int64_t times = f_.H / f_.G;
  int q = heads_before_rows(q_), k = heads_before_rows(k_), v = heads_before_rows(v_);
  if (score_rank_ == 5) {
    q = g_.view("reshape", q, {B_, constant(f_.G), constant(times), M_, constant(f_.D)});
    k = g_.unsqueeze(k, 2);
    v = g_.unsqueeze(v, 2);
  } else if (f_.heads == "repeat" || f_.heads == "expand") {
    k = shared(k, N_);
    v = shared(v, N_);
  }
  int s = product(q, k);
  if (map_) s = map_(s);
  s = masked(s);
  int o = normalised(s, v);
  if (gates_ >= 0)
    o = g_.to(g_.binary("mul", o, g_.unary("sigmoid", over_heads(gates_))), f_.graph.dtype);
  if (score_rank_ == 5) o = g_.view("reshape", o, {B_, constant(f_.H), M_, constant(f_.V)});
  output(o);
  const bool sums = sinks_ < 0 && f_.normaliser != "weights alone";
  if (dice_.once_in(8) && score_rank_ == 4 && !f_.rows_first && sums) {
    f_.normaliser += ", log-sum";
    g_.graph.outputs.push_back(g_.reduce("logsumexp", s, false));
  }
}

void Writer::whole_attention() {
  f_.normaliser = "sdpa";
  const int64_t times = f_.H / f_.G;
  int q = heads_before_rows(q_), k = heads_before_rows(k_), v = heads_before_rows(v_);
  int mask = -1;
  const bool causal = f_.mask == "causal" && dice_.once_in(2);
  f_.score = "plain";
  if (mask_ && !causal) mask = mask_();
  if (mask >= 0 && g_.rank(mask) < 2) mask = g_.unsqueeze(mask, 0);  // as PyTorch demands
  const double scale = dice_.once_in(3) ? 0.3 : 0;
  output(g_.attention(q, k, v, mask, causal, scale, times > 1));
}

void Writer::output(int o) {
  if (f_.rows_first) o = g_.transpose(o, 1, 2);
  g_.graph.outputs.push_back(o);
}

void Writer::finish() {
  std::string names;
  for (const spec::Argument& a : g_.graph.arguments) names += (names.empty() ? "" : ", ") + a.name;
  f_.example += fmt::format("    return {}\n", names);
  f_.graph = std::move(g_.graph);
}

Function function_of(uint64_t seed, Wanted wanted) { return Writer(seed, wanted).write(); }

}  // namespace kw::fuzz
