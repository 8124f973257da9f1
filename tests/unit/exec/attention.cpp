// Whole kernels on the executor, against attention written out in fp64 here.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>

#include "edited_program.h"
#include "exec/exec.h"
#include "num/compare.h"
#include "num/random.h"

namespace kw {
namespace {

struct Shape {
  int64_t b, h, g, m, n;
};

using Keep = std::function<bool(int64_t b, int64_t i, int64_t j)>;
using Bias = std::function<double(int64_t h, int64_t i, int64_t j)>;

exec::Launch launch_of(const Shape& s) {
  const auto normal = [](uint64_t stream) { return Draw{Draw::Kind::normal, stream}; };
  exec::Launch launch;
  launch.tensors["q"] = draw(normal(1), 7, Dtype::bf16, {s.b, s.h, s.m, 128});
  launch.tensors["k"] = draw(normal(2), 7, Dtype::bf16, {s.b, s.g, s.n, 128});
  launch.tensors["v"] = draw(normal(3), 7, Dtype::bf16, {s.b, s.g, s.n, 128});
  return launch;
}

struct Truth {
  Tensor o, lse;
};

// Attention as its definition says. A row without a key is 0, its log-sum -inf.
Truth attention(const exec::Launch& in, const Shape& s, const Keep& keep, const Bias& bias) {
  Truth t{Tensor(Dtype::f64, {s.b, s.h, s.m, 128}), Tensor(Dtype::f64, {s.b, s.h, s.m})};
  const Tensor &q = in.tensors.at("q"), &k = in.tensors.at("k"), &v = in.tensors.at("v");
  for (int64_t b = 0; b < s.b; ++b)
    for (int64_t h = 0; h < s.h; ++h)
      for (int64_t i = 0; i < s.m; ++i) {
        const int64_t g = h / (s.h / s.g);
        double sum = 0, top = -INFINITY;
        std::vector<double> p(s.n, -INFINITY), o(128);
        for (int64_t j = 0; j < s.n; ++j) {
          if (!keep(b, i, j)) continue;
          const double* qi = &q.values[q.offset({b, h, i, 0})];
          const double* kj = &k.values[k.offset({b, g, j, 0})];
          double x = 0;
          for (int64_t d = 0; d < 128; ++d) x += qi[d] * kj[d];
          p[j] = x / std::sqrt(128.0) + bias(h, i, j);
          top = std::max(top, p[j]);
        }
        for (int64_t j = 0; j < s.n; ++j) {
          const double e = p[j] == -INFINITY ? 0 : std::exp(p[j] - top);
          sum += e;
          const double* vj = &v.values[v.offset({b, g, j, 0})];
          for (int64_t d = 0; d < 128; ++d) o[d] += e * vj[d];
        }
        for (int64_t d = 0; d < 128; ++d)
          t.o.values[t.o.offset({b, h, i, d})] = sum > 0 ? o[d] / sum : 0;
        t.lse.values[t.lse.offset({b, h, i})] = top + std::log(sum);
      }
  return t;
}

void expect_attention(const std::string& program, const Shape& s, const exec::Launch& launch,
                      const Keep& keep, const Bias& bias) {
  const auto p = test::parsed(program, test::text_of(program));
  ASSERT_TRUE(p);
  const exec::Outcome got = exec::run(*p, launch);
  for (const Diagnostic& d : got.faults) ADD_FAILURE() << render(d);
  ASSERT_TRUE(got.faults.empty());
  const Truth want = attention(launch, s, keep, bias);
  const Comparison o = compare_rows(got.outputs.at("o"), want.o, {accepted_error(0, Dtype::bf16)});
  EXPECT_TRUE(o.within) << program << " row " << o.worst_row << " ratio " << o.worst_ratio;
  const Tensor& lse = got.outputs.at("lse");
  for (int64_t r = 0; r < lse.count(); ++r) {
    if (want.lse.values[r] == -INFINITY)
      EXPECT_EQ(lse.values[r], -INFINITY);
    else
      EXPECT_NEAR(lse.values[r], want.lse.values[r], 1e-5 * (1 + std::fabs(want.lse.values[r])));
  }
}

double no_bias(int64_t, int64_t, int64_t) { return 0; }

const Shape kShapes[] = {{1, 1, 1, 1, 1},     {1, 2, 1, 64, 128}, {2, 4, 2, 129, 127},
                         {1, 2, 2, 200, 257}, {1, 4, 1, 300, 70}, {2, 2, 1, 65, 300}};

TEST(Attention, of_all_keys_is_the_definition_for_ragged_shapes_and_grouped_heads) {
  int grid = 0;  // 1, 2, 3 CTAs in turn
  for (const Shape& s : kShapes) {
    exec::Launch launch = launch_of(s);
    launch.grid = 1 + grid++ % 3;
    expect_attention(
        "full", s, launch, [](auto, auto, auto) { return true; }, no_bias);
  }
}

TEST(Attention, causal_is_the_definition_also_when_there_are_more_queries_than_keys) {
  for (const Shape& s : kShapes)
    expect_attention(
        "causal", s, launch_of(s), [](auto, auto i, auto j) { return j <= i; }, no_bias);
}

TEST(Attention, with_a_prefix_for_each_batch_entry_is_the_definition) {
  for (const Shape& s : kShapes)
    for (int64_t length : {int64_t{0}, s.n / 2, s.n}) {
      exec::Launch launch = launch_of(s);
      Tensor prefix(Dtype::i32, {s.b});
      for (int64_t b = 0; b < s.b; ++b) prefix.values[b] = double(length / (b + 1));
      launch.tensors["prefix"] = prefix;
      expect_attention(
          "prefix_lm", s, launch,
          [&](auto b, auto i, auto j) { return j <= i || j < prefix.values[b]; }, no_bias);
    }
}

TEST(Attention, with_linear_biases_is_the_definition) {
  for (const Shape& s : kShapes) {
    exec::Launch launch = launch_of(s);
    Tensor slopes(Dtype::f32, {s.h});
    for (int64_t h = 0; h < s.h; ++h) slopes.values[h] = std::exp2(-double(h + 1));
    launch.tensors["slopes"] = slopes;
    expect_attention(
        "alibi", s, launch, [](auto, auto i, auto j) { return j <= i; },
        [&](auto h, auto i, auto j) { return slopes.values[h] * double(j - i); });
  }
}

TEST(Attention, takes_a_fraction_of_a_second_for_two_by_three_blocks_of_eight_heads) {
  const Shape s{2, 4, 2, 300, 300};
  const auto p = test::parsed("full", test::text_of("full"));
  const exec::Launch launch = launch_of(s);
  const auto start = std::chrono::steady_clock::now();
  const exec::Outcome got = exec::run(*p, launch);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(seconds.count()));
  EXPECT_TRUE(got.faults.empty());
  EXPECT_EQ(got.contractions.size(),
            2u * 4 * 2 * 2 * 2 * 3);  // b, h, row blocks, CTAs, warpgroups, key blocks
}

// The most memory that this process has had, in MB.
int64_t most_memory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

TEST(Attention, of_thousands_of_ctas_has_the_shared_memory_of_those_that_run) {
  const auto p =
      test::parsed("ampere", read_source(in_clone("/tests/corpus/sm80_attention_fwd.tl"))->text);
  const int64_t before = most_memory();
  const exec::Outcome got = exec::run(*p, launch_of({4000, 1, 1, 1, 1}));
  EXPECT_TRUE(got.faults.empty());
  EXPECT_EQ(got.contractions.size(), 4000u);
  EXPECT_LT(most_memory() - before, 400);  // all at once have 770
}

}  // namespace
}  // namespace kw
