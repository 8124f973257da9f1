#include "grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <random>

namespace kw::fuzz {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15 + 1) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool once_in(int64_t n) { return below(n) == 0; }
  int64_t between(int64_t a, int64_t b) { return a + below(b - a + 1); }
  template <class T>
  T one_of(std::initializer_list<T> items) {
    return items.begin()[below(static_cast<int64_t>(items.size()))];
  }

 private:
  std::mt19937_64 random_;
};

class Writer {
 public:
  explicit Writer(uint64_t seed) : dice_(seed) { f_.seed = seed; }

  Function write() {
    sizes();
    operands();
    if (f_.heads == "sdpa" || (f_.heads == "plain" && dice_.once_in(5)))
      whole_attention();
    else
      in_parts();
    finish();
    return std::move(f_);
  }

 private:
  Dice dice_;
  Function f_;
  Builder g_;
  const ExprPtr B_ = symbol("B"), M_ = symbol("M"), N_ = symbol("N");
  int q_ = -1, k_ = -1, v_ = -1, i_ = -1, j_ = -1;
  int score_rank_ = 4;
  std::map<std::string, int> arguments_;

  // ---- sizes and arguments

  void sizes() {
    f_.B = dice_.between(1, 2);
    f_.G = dice_.between(1, 2);
    f_.H = f_.G * dice_.one_of<int64_t>({1, 1, 2, 3});
    f_.V = 16 << dice_.once_in(8);
    f_.D = f_.V == 16 ? 16 : 96;
    f_.M = dice_.one_of<int64_t>({1, 5, 17, 40, 63, 64, 65, 66, 70});
    f_.N = dice_.one_of<int64_t>({1, 2, 15, 16, 17, 31, 32, 33, 40, 47, 50, 64, 70});
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

  int argument(const std::string& name, Dtype t, const Shape& shape, const Draw& draw,
               const std::string& example) {
    const auto found = arguments_.find(name);
    if (found != arguments_.end()) return found->second;
    Draw d = draw;
    d.stream = arguments_.size();
    f_.draws[name] = d;
    f_.example += fmt::format("    {} = {}\n", name, example);
    return arguments_[name] = g_.argument(name, t, shape);
  }

  int operand(const std::string& name, const ExprPtr& heads, const ExprPtr& rows) {
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
  void operands() {
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
    choose_mask();
    i_ = g_.unsqueeze(g_.arange(M_), 1);
    j_ = dice_.once_in(2) ? g_.arange(N_) : g_.unsqueeze(g_.arange(N_), 0);
  }

  Draw lengths() const { return {Draw::Kind::integer, 0, 1, 0, f_.N + 3}; }

  int per_batch(const std::string& name) {
    return argument(name, Dtype::i32, {B_}, lengths(), "torch.tensor([17, 60], dtype=torch.int32)");
  }
  int per_head(const std::string& name) {
    return argument(name, Dtype::i32, {constant(f_.H)}, lengths(),
                    fmt::format("torch.arange(1, {}, dtype=torch.int32) * 7", f_.H + 1));
  }
  int real_per_head(const std::string& name, double scale) {
    return argument(name, Dtype::f32, {constant(f_.H)}, {Draw::Kind::uniform, 0, scale},
                    fmt::format("torch.rand({}) * {}", f_.H, scale));
  }
  int number(const std::string& name, double value) {
    const int n = argument(name, Dtype::f32, {}, {Draw::Kind::constant, 0, 1, 0, 0, value},
                           fmt::format("{}", value));
    for (spec::Argument& a : g_.graph.arguments)
      if (a.name == name) a.value = value;
    return n;
  }
  int whole_number(const std::string& name, int64_t value) {
    const int n = argument(name, Dtype::i32, {}, {Draw::Kind::constant, 0, 1, 0, 0, double(value)},
                           fmt::format("{}", value));
    for (spec::Argument& a : g_.graph.arguments)
      if (a.name == name) a.value = double(value);
    return n;
  }

  // A vector over batch or heads, as it broadcasts against the scores.
  int over_batch(int x) {
    Shape s(static_cast<size_t>(score_rank_), constant(1));
    s[0] = B_;
    return g_.view("view", x, s);
  }
  int over_heads(int x) {
    if (score_rank_ == 5)
      return g_.view("view", x, {constant(f_.G), constant(f_.H / f_.G), constant(1), constant(1)});
    return g_.view("view", x, {constant(f_.H), constant(1), constant(1)});  // without heads, H is 1
  }

  // ---- masks: atoms are chosen before any operator is written, since they may need arguments

  using Make = std::function<int()>;
  Make mask_;

  void choose_mask() {
    if (dice_.once_in(6)) {
      f_.mask = "none";
      return;
    }
    mask_ = predicate(static_cast<int>(dice_.one_of<int64_t>({0, 0, 1, 1, 2})), f_.mask);
  }

  Make predicate(int depth, std::string& name) {
    if (depth > 0) {
      std::string a_name, b_name;
      const Make a = predicate(depth - 1, a_name);
      if (dice_.once_in(5)) {
        name = "not " + a_name;
        const char* op = dice_.one_of({"logical_not", "bitwise_not"});
        return [this, a, op] { return g_.unary(op, a()); };
      }
      const Make b = predicate(depth - 1, b_name);
      const bool either = dice_.once_in(2);
      name = "combined";
      const char* op = either ? dice_.one_of({"logical_or", "bitwise_or"})
                              : dice_.one_of({"logical_and", "bitwise_and"});
      return [this, a, b, op] {
        const int x = a();
        return g_.binary(op, x, b());
      };
    }
    return atom(name);
  }

  Make compare(const char* op, const Make& a, const Make& b) {
    return [this, op, a, b] {
      const int x = a();
      return g_.binary(op, x, b());
    };
  }

  // Bits of coordinates, and of a word that each batch entry has.
  Make bits(std::string& name, int64_t c) {
    if (dice_.once_in(2)) {
      name = "bits of coordinates";
      return [this, c, op = dice_.one_of({"bitwise_and", "bitwise_or", "bitwise_xor"})] {
        const int far = g_.integer("bitwise_right_shift", j_, c % 4);
        return g_.integer("ne", g_.integer("bitwise_and", g_.binary(op, i_, far), c), 0);
      };
    }
    name = "words";
    const int words =
        argument("words", Dtype::i32, {B_},
                 {Draw::Kind::integer, 0, 1, -(int64_t{1} << 31), (int64_t{1} << 31) - 1},
                 "torch.tensor([-2, 23130], dtype=torch.int32)");
    return [this, words, whole = dice_.once_in(2)] {
      const int at = g_.integer("remainder", j_, 32), word = over_batch(words);
      if (whole) {  // the bit in its place
        const int bit = g_.binary("bitwise_left_shift", fuzz::whole(1), node(at));
        return g_.integer("ne", g_.binary("bitwise_and", word, bit), 0);
      }
      const int moved = g_.binary("bitwise_right_shift", word, at);
      return g_.integer("eq", g_.integer("bitwise_and", moved, 1), 1);
    };
  }

  Make atom(std::string& name) {
    const auto pick = [&](const char* n) { name = n; };
    const Make i = [this] { return i_; }, j = [this] { return j_; };
    const int64_t c = dice_.between(1, 40), r = dice_.between(2, 6);
    switch (dice_.below(27)) {
      case 0:
      case 1:
      case 2:
        pick("causal");
        return dice_.once_in(2) ? compare("le", j, i) : compare("ge", i, j);
      case 3:
        pick("causal");
        return [this] { return g_.triangle("tril", g_.full("ones", {M_, N_}, Dtype::boolean), 0); };
      case 4:
        pick("triangle");
        return [this, c] {
          return g_.triangle("triu", g_.full("ones", {M_, N_}, Dtype::boolean), c % 9 - 4);
        };
      case 5:
        pick("strict");
        return compare(dice_.one_of({"lt", "gt"}), j, i);
      case 6:
      case 7:
      case 8:
        pick("window");
        return [this, c, abs = dice_.once_in(2)] {
          const int d = g_.binary("sub", i_, j_);
          return g_.integer(abs ? "le" : "lt", abs ? g_.unary("abs", d) : d, c);
        };
      case 9:
      case 10: {
        pick("prefix");
        const int p = per_batch("prefix");
        return [this, p] { return g_.binary("lt", j_, over_batch(p)); };
      }
      case 11: {
        pick("start");
        const int p = per_batch("start");
        return [this, p] { return g_.binary("ge", j_, over_batch(p)); };
      }
      case 12: {
        pick("prefix and distance");
        const int p = per_batch("prefix");
        return [this, p, c] {
          return g_.binary("le", j_, g_.binary("add", i_, g_.integer("sub", over_batch(p), c)));
        };
      }
      case 13:
      case 14:
        pick("blocks");
        return [this, c, op = dice_.one_of({"le", "eq", "ge"})] {
          const int a = g_.integer("floor_divide", j_, c);
          return g_.binary(op, a, g_.integer("floor_divide", i_, c));
        };
      case 15:
        pick("dilated");
        return [this, r] {
          return g_.integer("eq", g_.integer("remainder", g_.binary("sub", i_, j_), r), 0);
        };
      case 16:
        if (dice_.once_in(2)) return bits(name, c);
        pick("dilated");
        return [this, r] { return g_.integer("ne", g_.integer("remainder", j_, r), 1); };
      case 17:
        pick("first keys");
        return [this, c] { return g_.integer("lt", j_, c % 10); };
      case 18:
        pick("rows");
        return [this, c, op = dice_.one_of({"lt", "ge"})] { return g_.integer(op, i_, c % 10); };
      case 19: {
        pick("per head");
        const int p = per_head("limit");
        return [this, p] { return g_.binary("lt", j_, over_heads(p)); };
      }
      case 20: {
        pick("argument");
        const int w = whole_number("window", dice_.between(0, 30));
        return [this, w] { return g_.binary("lt", g_.binary("sub", i_, j_), w); };
      }
      case 21: {
        pick("gathered");
        const int table = argument("table", Dtype::i32, {constant(4)}, lengths(),
                                   "torch.tensor([3, 20, 41, 70], dtype=torch.int32)");
        const int kind = argument("kind", Dtype::i32, {B_}, {Draw::Kind::integer, 0, 1, 0, 3},
                                  "torch.tensor([1, 2], dtype=torch.int32)");
        return [this, table, kind] {
          return g_.binary("lt", j_, over_batch(g_.index(table, {kind})));
        };
      }
      case 22:
        pick("aligned at the end");
        return [this] {
          const int last = g_.binary("add", node(i_), size(spec::binary("-", N_, M_)));
          return g_.binary("le", j_, last);
        };
      case 25:
        pick("some heads");
        return [this, r] {
          const int h = over_heads(g_.arange(constant(f_.H)));
          const int some = g_.integer("eq", g_.integer("remainder", h, r), 0);
          return g_.binary("logical_or", some, g_.binary("le", j_, i_));
        };
      case 23: {
        if (!dice_.once_in(3)) return atom(name);
        pick("per row");
        const int ends = argument("ends", Dtype::i32, {B_, M_}, lengths(),
                                  "torch.randint(0, 80, (2, 48), dtype=torch.int32)");
        return [this, ends] {
          Shape s(static_cast<size_t>(score_rank_), constant(1));
          s[0] = B_;
          s[s.size() - 2] = M_;
          return g_.binary("lt", j_, g_.view("view", ends, s));
        };
      }
      case 24: {
        if (!dice_.once_in(3)) return atom(name);
        pick("documents");
        const int keep = argument("padding", Dtype::boolean, {B_, N_},
                                  {Draw::Kind::integer, 0, 1, 0, 1}, "torch.rand(2, 80) < 0.7");
        return [this, keep] {
          Shape s(static_cast<size_t>(score_rank_), constant(1));
          s[0] = B_;
          s.back() = N_;
          return g_.view("view", keep, s);
        };
      }
      default:
        pick("minimum");
        return [this, c] {
          const int bound = g_.integer("add", i_, c % 5 - 2);
          const int least = g_.binary(c % 2 ? "minimum" : "maximum", bound,
                                      g_.integer("mul", g_.integer("floor_divide", i_, 8), 8));
          return g_.binary("le", j_, least);
        };
    }
  }

  // ---- score maps

  using Map = std::function<int(int)>;
  Map map_;

  int distance() { return g_.binary("sub", j_, i_); }

  void choose_score() {
    const double c = double(dice_.between(1, 40)) / 4;
    switch (dice_.below(21)) {
      case 0:
      case 1:
        f_.score = "softcap";
        map_ = [this, c](int s) {
          return g_.binary("mul", g_.unary("tanh", g_.binary("div", s, c)), c);
        };
        return;
      case 2:
        f_.score = "tanh";
        map_ = [this](int s) { return g_.unary("tanh", s); };
        return;
      case 3:
      case 4: {
        f_.score = "slopes";
        const int slopes = real_per_head("slopes", 0.25);
        map_ = [this, slopes, absolute = dice_.once_in(3)](int s) {
          const int d = distance();
          const int bias = absolute ? g_.unary("neg", g_.unary("abs", d)) : d;
          return g_.binary("add", s, g_.binary("mul", over_heads(slopes), bias));
        };
        return;
      }
      case 5: {
        f_.score = "temperature of heads";
        const int t = real_per_head("temperature", 2.0);
        map_ = [this, t](int s) { return g_.binary("mul", s, over_heads(t)); };
        return;
      }
      case 6: {
        f_.score = "factor";
        const int beta = number("beta", c / 4);
        map_ = [this, beta](int s) { return g_.binary("mul", s, beta); };
        return;
      }
      case 7:
        f_.score = "distance";
        map_ = [this, c](int s) {
          return g_.binary("sub", s, g_.binary("mul", g_.unary("abs", distance()), c / 64));
        };
        return;
      case 8:
        f_.score = "position";
        map_ = [this](int s) {
          const int pairs = g_.integer("floor_divide", i_, 16);
          return g_.binary("mul", s, g_.binary("add", g_.binary("mul", pairs, 0.125), 1.0));
        };
        return;
      case 9:
        f_.score = "where";
        map_ = [this, c](int s) {
          const int near =
              g_.binary("eq", g_.integer("remainder", j_, 3), g_.integer("remainder", i_, 3));
          return g_.where(near, node(s), node(g_.binary("mul", s, c / 8)));
        };
        return;
      case 10: {
        f_.score = "relative position";
        map_ = [this, c](int s) {
          const int d = g_.clamp(distance(), -4, 4);
          return g_.binary("add", s, g_.binary("mul", d, c / 32));
        };
        return;
      }
      case 11: {
        if (f_.heads == "own dimension" || f_.heads == "absent" || !dice_.once_in(3)) {
          f_.score = "plain";
          return;
        }
        f_.score = "relative table";  // a read at each score: refused
        const int table =
            argument("bias", Dtype::f32, {constant(f_.H), constant(9)},
                     {Draw::Kind::normal, 0, 0.5}, fmt::format("torch.randn({}, 9)", f_.H));
        map_ = [this, table](int s) {
          const int d = g_.integer("add", g_.clamp(distance(), -4, 4), 4);
          const int h = g_.view("view", g_.arange(constant(f_.H)),
                                {constant(f_.H), constant(1), constant(1)});
          return g_.binary("add", s, g_.index(table, {h, d}));
        };
        return;
      }
      case 12: {
        f_.score = "softcap and slopes";
        const int slopes = real_per_head("slopes", 0.25);
        map_ = [this, slopes, c](int s) {
          const int capped = g_.binary("mul", g_.unary("tanh", g_.binary("div", s, c)), c);
          return g_.binary("add", capped, g_.binary("mul", over_heads(slopes), distance()));
        };
        return;
      }
      case 13:
        f_.score = "sigmoid";
        map_ = [this, c](int s) { return g_.binary("mul", g_.unary("sigmoid", s), c); };
        return;
      case 15: {
        f_.score = "temperature of batches";
        const int t = argument("temperature", Dtype::f32, {B_}, {Draw::Kind::uniform, 0, 2.0},
                               "torch.tensor([0.5, 1.5])");
        map_ = [this, t](int s) { return g_.binary("mul", s, over_batch(t)); };
        return;
      }
      case 14:
        f_.score = "relu";
        map_ = [this](int s) { return g_.unary("relu", s); };
        return;
      default:
        f_.score = "plain";
    }
  }

  // ---- the function

  int heads_before_rows(int x) { return f_.rows_first ? g_.transpose(x, 1, 2) : x; }

  // A head of k and v for each of q.
  int shared(int x, const ExprPtr& rows) {
    const int64_t times = f_.H / f_.G;
    if (f_.heads == "repeat") return g_.repeat_interleave(x, times, 1);
    const ExprPtr columns = g_.shape(x).back();
    const Shape split = {B_, constant(f_.G), constant(times), rows, columns};
    return g_.view("reshape", g_.view("expand", g_.unsqueeze(x, 2), split),
                   {B_, constant(f_.H), rows, columns});
  }

  int masked(int s) {
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

  int product(int q, int k) {
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

  int normalised(int s, int v) {
    const Dtype t = g_.dtype(v);
    const auto weighted = [&](int p) { return g_.matmul(g_.dtype(p) == t ? p : g_.to(p, t), v); };
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

  void in_parts() {
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
    if (score_rank_ == 5) o = g_.view("reshape", o, {B_, constant(f_.H), M_, constant(f_.V)});
    output(o);
    if (dice_.once_in(8) && score_rank_ == 4 && !f_.rows_first) {
      f_.normaliser += ", log-sum";
      g_.graph.outputs.push_back(g_.reduce("logsumexp", s, false));
    }
  }

  void whole_attention() {
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

  void output(int o) {
    if (f_.rows_first) o = g_.transpose(o, 1, 2);
    g_.graph.outputs.push_back(o);
  }

  void finish() {
    std::string names;
    for (const spec::Argument& a : g_.graph.arguments)
      names += (names.empty() ? "" : ", ") + a.name;
    f_.example += fmt::format("    return {}\n", names);
    f_.graph = std::move(g_.graph);
  }
};

}  // namespace

Function function_of(uint64_t seed) { return Writer(seed).write(); }

}  // namespace kw::fuzz
