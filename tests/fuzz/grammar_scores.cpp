// What becomes of a score before the mask: soft caps, slopes, temperatures, tables. It is chosen,
// with the arguments that it needs, before any operator is written: a Map writes it later.
#include <fmt/format.h>

#include "grammar_writer.h"

namespace kw::fuzz {

int Writer::distance() { return g_.binary("sub", j_, i_); }

void Writer::choose_score() {
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
          argument("bias", Dtype::f32, {constant(f_.H), constant(9)}, {Draw::Kind::normal, 0, 0.5},
                   fmt::format("torch.randn({}, 9)", f_.H));
      map_ = [this, table](int s) {
        const int d = g_.integer("add", g_.clamp(distance(), -4, 4), 4);
        const int h =
            g_.view("view", g_.arange(constant(f_.H)), {constant(f_.H), constant(1), constant(1)});
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

namespace {
std::string name_in_torch(Dtype t) {
  return t == Dtype::f32 ? "float32" : t == Dtype::f16 ? "float16" : "bfloat16";
}
}  // namespace

// A bias of each query and key, of all batch entries and heads, or shared by some.
void Writer::choose_pairs() {
  if (score_rank_ != 4 || f_.heads == "own dimension" || !dice_.once_in(4)) return;
  const bool own_batch = dice_.once_in(2), own_heads = dice_.once_in(2), half = dice_.once_in(3);
  f_.score += ", bias of pairs";
  const Dtype t = dice_.once_in(2) ? Dtype::f32 : f_.graph.dtype;
  const int bias =
      argument("pair_bias", t,
               {own_batch ? B_ : constant(1), own_heads ? constant(f_.H) : constant(1), M_, N_},
               {Draw::Kind::normal, 0, 0.5},
               fmt::format("torch.randn({}, {}, 48, 80, dtype=torch.{})", own_batch ? 2 : 1,
                           own_heads ? f_.H : 1, name_in_torch(t)));
  map_ = [this, bias, half, before = map_](int s) {
    return g_.binary("add", before ? before(s) : s, half ? g_.binary("mul", bias, 0.5) : bias);
  };
}

// What is learned beside slopes: a bias of each key, a sink and a gate of each head.
void Writer::choose_learned() {
  if (dice_.once_in(4)) {
    f_.score += ", bias of keys";
    const Dtype t = dice_.once_in(2) ? Dtype::f32 : f_.graph.dtype;
    const int bias = argument("key_bias", t, {B_, N_}, {Draw::Kind::normal, 0, 0.5},
                              fmt::format("torch.randn(2, 80, dtype=torch.{})", name_in_torch(t)));
    map_ = [this, bias, before = map_](int s) {
      Shape shape(static_cast<size_t>(score_rank_), constant(1));
      shape.front() = B_;
      shape.back() = N_;
      return g_.binary("add", before ? before(s) : s, g_.view("view", bias, shape));
    };
  }
  choose_pairs();
  if (dice_.once_in(5)) sinks_ = real_per_head("sinks", 1.0);
  if (dice_.once_in(5)) gates_ = real_per_head("gates", 1.0);
}

}  // namespace kw::fuzz
