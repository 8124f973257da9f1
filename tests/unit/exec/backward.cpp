// The kernel of the backward pass on the executor, against the gradients written out in fp64 here.
#include <gtest/gtest.h>

#include <cmath>

#include "edited_program.h"
#include "exec/exec.h"
#include "in_clone.h"
#include "num/compare.h"
#include "num/random.h"

namespace kw {
namespace {

struct Shape {
  int64_t b, h, g, m, n;
};
constexpr int64_t kD = 128;

struct Gradients {
  exec::Launch launch;  // with what the forward kernel gives
  Tensor dq, dk, dv;
  Tensor d_head, d_batch;  // of a bias that a head has, or a key of a batch entry
};

double dot(const double* a, const double* b) {
  double x = 0;
  for (int64_t d = 0; d < kD; ++d) x += a[d] * b[d];
  return x;
}

void add(double* to, double x, const double* v) {
  for (int64_t d = 0; d < kD; ++d) to[d] += x * v[d];
}

// One head: P = softmax(scale q k^T), dV = P^T dO, dP = dO V^T, dS = P * (dP - rowsum(dO * O)).
void one_head(Gradients& g, const Shape& s, int64_t b, int64_t h) {
  const auto at = [](Tensor& t, int64_t b, int64_t h, int64_t r) {
    return &t.values[t.offset({b, h, r, 0})];
  };
  auto& in = g.launch.tensors;
  const double scale = 1 / std::sqrt(double(kD));
  const int64_t kv = h / (s.h / s.g);
  for (int64_t i = 0; i < s.m; ++i) {
    const double *q = at(in["q"], b, h, i), *d_o = at(in["d_o"], b, h, i);
    std::vector<double> p(s.n), o(kD);
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < s.n; ++j) {
      p[j] = scale * dot(q, at(in["k"], b, kv, j));
      top = std::max(top, p[j]);
    }
    for (double& x : p) sum += x = std::exp(x - top);
    for (int64_t j = 0; j < s.n; ++j) add(o.data(), p[j] /= sum, at(in["v"], b, kv, j));
    for (int64_t d = 0; d < kD; ++d) at(in["o"], b, h, i)[d] = float(o[d]);
    in["lse"].values[in["lse"].offset({b, h, i})] = float(top + std::log(sum));
    const double delta = dot(d_o, o.data());
    for (int64_t j = 0; j < s.n; ++j) {
      const double of_score = p[j] * (dot(d_o, at(in["v"], b, kv, j)) - delta),
                   ds = scale * of_score;
      g.d_head.values[h] += of_score;
      g.d_batch.values[b * s.n + j] += of_score;
      add(at(g.dv, b, kv, j), p[j], d_o);
      add(at(g.dk, b, kv, j), ds, q);
      add(at(g.dq, b, h, i), ds, at(in["k"], b, kv, j));
    }
  }
}

Gradients gradients(const Shape& s, double spread) {
  const auto drawn = [&](uint64_t stream, int64_t heads, int64_t rows) {
    Draw how{Draw::Kind::normal, stream};
    how.scale = spread;
    return draw(how, 7, Dtype::bf16, {s.b, heads, rows, kD});
  };
  Gradients g;
  auto& in = g.launch.tensors;
  in["q"] = drawn(1, s.h, s.m), in["k"] = drawn(2, s.g, s.n), in["v"] = drawn(3, s.g, s.n);
  in["d_o"] = in["do_rows"] = drawn(4, s.h, s.m);
  in["o"] = Tensor(Dtype::f32, {s.b, s.h, s.m, kD});
  in["lse"] = Tensor(Dtype::f32, {s.b, s.h, s.m});
  g.dq = Tensor(Dtype::f64, {s.b, s.h, s.m, kD});
  g.dk = g.dv = Tensor(Dtype::f64, {s.b, s.g, s.n, kD});
  g.d_head = Tensor(Dtype::f64, {s.h}), g.d_batch = Tensor(Dtype::f64, {s.b, s.n});
  for (int64_t b = 0; b < s.b; ++b)
    for (int64_t h = 0; h < s.h; ++h) one_head(g, s, b, h);
  return g;
}

std::string corpus(const char* folder = "sm90") {
  return read_source(in_clone("/tests/corpus/") + folder + "_attention_bwd.tl")->text;
}

exec::Outcome ran(const Gradients& g, int grid = 2, const std::string& text = corpus()) {
  const auto p = test::parsed("sm90_attention_bwd", text);
  EXPECT_TRUE(p);
  exec::Launch launch = g.launch;
  launch.grid = grid;
  exec::Outcome out = exec::run(*p, launch);
  for (const Diagnostic& d : out.faults) ADD_FAILURE() << render(d);
  return out;
}

double relative(const Tensor& got, const Tensor& want) {
  double error = 0, norm = 0;
  for (int64_t n = 0; n < want.count(); ++n) {
    error += std::pow(got.values[n] - want.values[n], 2);
    norm += std::pow(want.values[n], 2);
  }
  return std::sqrt(error / norm);
}

class Backward : public testing::TestWithParam<const char*> {};
TEST_P(Backward, is_the_definition_for_ragged_shapes_and_grouped_heads) {
  int grid = 0;
  for (const Shape& s : {Shape{1, 1, 1, 1, 40},
                         {1, 2, 1, 64, 128},
                         {2, 4, 2, 129, 127},
                         {1, 2, 2, 200, 257},
                         {2, 2, 1, 65, 300}}) {
    const Gradients want = gradients(s, 1);
    const exec::Outcome got = ran(want, 1 + grid++ % 3, corpus(GetParam()));
    ASSERT_TRUE(got.faults.empty());
    // bf16's own autograd is off by 0.004 to 0.007.
    EXPECT_LT(relative(got.outputs.at("dq"), want.dq), 0.006) << s.m << " x " << s.n;
    EXPECT_LT(relative(got.outputs.at("dk"), want.dk), 0.006) << s.m << " x " << s.n;
    EXPECT_LT(relative(got.outputs.at("dv"), want.dv), 0.004) << s.m << " x " << s.n;
  }
}
INSTANTIATE_TEST_SUITE_P(Texts, Backward, testing::Values("sm90", "sm80"),
                         [](const auto& info) { return info.param; });

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Consumers that have 32 columns of dQ: half of a panel of K each, which makes the first 64.
TEST(BackwardText, products_of_halves_of_panels_begin_where_halves_do) {
  const std::string halves = replaced(corpus(), "param DQ = D // WARPGROUPS", "param DQ = 32");
  const Gradients want = gradients({1, 2, 1, 65, 300}, 1);
  exec::Outcome got = ran(want, 2, halves);
  ASSERT_TRUE(got.faults.empty());
  Tensor dq = want.dq;
  for (int64_t n = 0; n < dq.count(); ++n)
    if (n % kD >= 64) dq.values[n] = 0;
  EXPECT_LT(relative(got.outputs.at("dq"), dq), 0.006);
  const auto p = test::parsed("within", replaced(halves, "from me * DQ", "from me * 16"));
  ASSERT_TRUE(p);
  exec::Launch launch = want.launch;
  launch.grid = 1;
  got = exec::run(*p, launch);
  ASSERT_FALSE(got.faults.empty());
  EXPECT_EQ(got.faults[0].code, "exec.bounds");
}

// As tests/tl/bias_gradients.tl.
TEST(BackwardText, gradients_of_biases_are_totals_of_the_rows_of_dS) {
  std::string text = corpus();
  const auto behind = [&](const std::string& line, const std::string& more) {
    const size_t at = text.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    text.insert(at + line.size(), more);
  };
  behind("    dq: out element[B, H, M, D]\n",
         "    d_head: out f32[H]\n    d_batch: out f32[B, N]\n");
  behind("    offset, delta: scratch f32[B, H, P]\n", "    part: scratch f32[B, H, N]\n");
  behind("        write_row sum_dq[b, h, r] over j < D = 0.0\n",
         "    for b, h, r in each_row(part, w):\n        write_value part[b, h, r] = 0.0\n");
  behind("        step advance(x: index, first: bool):\n",
         "            let h = c.g * group + x // queries.count\n"
         "            lane_sum part_r: real[64]\n");
  behind("            arrive ds_full[t]\n",
         "            fill part_r = 0.0\n            row_sum part_r += dp\n"
         "            add_rows part_r -> part[c.b, h, j0]\n");
  behind("    round_sums sum_dq * scale by w -> dq\n",
         "    sum_over part by w -> d_head\n    sum_over part by w -> d_batch\n");
  for (const Shape& s : {Shape{1, 1, 1, 1, 40}, {2, 4, 2, 129, 127}, {1, 2, 2, 100, 257}}) {
    const Gradients want = gradients(s, 1);
    const exec::Outcome got = ran(want, 2, text);
    ASSERT_TRUE(got.faults.empty());
    EXPECT_LT(relative(got.outputs.at("d_batch"), want.d_batch), 0.002) << s.m << " x " << s.n;
    EXPECT_LT(relative(got.outputs.at("dk"), want.dk), 0.006) << s.m << " x " << s.n;
    // All scores of a row together have a gradient of 0: what is left is small beside the terms.
    double terms = 0;
    for (double x : want.d_batch.values) terms += x * x;
    for (int64_t h = 0; h < s.h; ++h)
      EXPECT_NEAR(got.outputs.at("d_head").values[h], want.d_head.values[h],
                  0.002 * std::sqrt(terms) + 1e-6);
  }
}

TEST(BackwardText, a_pass_writes_values_of_rows_inside_alone) {
  const std::string text = corpus();
  const std::string value = "write_value delta[b, h, r]";
  for (const char* elsewhere :
       {"[b - 1, h, r]", "[b, h - 1, r]", "[b, h, r - 1]", "[b + 1, h, r]", "[b, h, r + 1]"}) {
    std::string other = text;
    other.replace(other.find(value), value.size(), std::string("write_value delta") + elsewhere);
    const auto p = test::parsed("elsewhere", other);
    ASSERT_TRUE(p);
    exec::Launch launch = gradients({1, 1, 1, 1, 40}, 1).launch;
    launch.grid = 1;
    const exec::Outcome out = exec::run(*p, launch);
    ASSERT_FALSE(out.faults.empty()) << elsewhere;
    EXPECT_EQ(out.faults[0].code, "exec.bounds") << elsewhere;
  }
}

}  // namespace
}  // namespace kw
