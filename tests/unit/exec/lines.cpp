// Lines: what the kernels of RMSNorm compute, against plain loops, and in the exact reading.
#include <gtest/gtest.h>

#include <cmath>

#include "edited_program.h"
#include "exec/exec.h"
#include "in_clone.h"
#include "num/random.h"

namespace kw {
namespace {

constexpr int64_t B = 2, H = 2, M = 3,
                  C = 1032;  // some threads have eight columns more than others
constexpr float kEps = 1e-6f;

std::string text_of(const std::string& kernel) {
  return read_source(in_clone("/tests/corpus/sm80_") + kernel + ".tl")->text;
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Tensor drawn(uint64_t stream, std::vector<int64_t> shape) {
  Tensor t(Dtype::bf16, std::move(shape));
  const Random random(3, stream);
  for (size_t n = 0; n < t.values.size(); ++n)
    t.values[n] = round_to(Dtype::bf16, double(random.word(n) % 4096) / 1024 - 2);
  return t;
}

exec::Launch launch_of(bool residual) {
  exec::Launch launch;
  launch.tensors = {{"x", drawn(0, {B, H, M, C})}, {"weight", drawn(1, {C})}};
  if (residual) launch.tensors["residual"] = drawn(2, {B, H, M, C});
  launch.params = {{"C", C}, {"WARPGROUPS", 1}};
  launch.grid = B * H * M;
  return launch;
}

exec::Outcome run(const std::string& text, const exec::Launch& launch) {
  const auto program = test::parsed("lines", text);
  return program ? exec::run(*program, launch) : exec::Outcome{};
}
std::string fault_of(const std::string& text) {
  const exec::Outcome out = run(text, launch_of(false));
  return out.faults.empty() ? "(none)" : out.faults[0].code;
}

// How far y is from fp64 at most, in shares of the most that rounding to bf16 makes.
double worst(const exec::Outcome& out, const exec::Launch& launch) {
  const Tensor &x = launch.tensors.at("x"), &w = launch.tensors.at("weight"),
               &y = out.outputs.at("y");
  double most = 0;
  for (int64_t row = 0; row < B * H * M; ++row) {
    std::vector<double> h(C);
    double squares = 0;
    for (int64_t j = 0; j < C; ++j) {
      h[j] = x.values[row * C + j];
      if (launch.tensors.count("residual"))
        h[j] = round_to(Dtype::bf16, h[j] + launch.tensors.at("residual").values[row * C + j]);
      squares += h[j] * h[j];
    }
    for (int64_t j = 0; j < C; ++j) {
      const double want = h[j] / std::sqrt(squares / C + kEps) * w.values[j];
      const double unit = std::ldexp(1.0, -8) * std::max(std::abs(want), 1e-30);
      most = std::max(most, std::abs(y.values[row * C + j] - want) / unit);
    }
  }
  return most;
}

TEST(Lines, of_rms_norm_are_within_one_rounding_of_fp64) {
  for (const bool residual : {false, true}) {
    const exec::Launch launch = launch_of(residual);
    const exec::Outcome out = run(text_of(residual ? "add_rms_norm" : "rms_norm"), launch);
    ASSERT_TRUE(out.faults.empty()) << render(out.faults[0]);
    EXPECT_LT(worst(out, launch), 1.01);
    if (!residual) continue;
    const Tensor &x = launch.tensors.at("x"), &r = launch.tensors.at("residual");
    for (int64_t n = 0; n < x.count(); ++n)
      ASSERT_EQ(out.outputs.at("h").values[n], round_to(Dtype::bf16, x.values[n] + r.values[n]));
  }
}

// A compiler fuses one of two products; the text of a comparison keeps both rounded.
TEST(Lines, whose_products_cancel_are_wrong_where_one_of_them_is_fused) {
  const std::string body = "x_r[j] * factor * weight_r[j]",
                    nothing = "(squares * factor - squares * 2.0 * (factor * 0.5))";
  const auto error = [&](const std::string& edited, exec::Fused fused) {
    exec::Launch launch = launch_of(false);
    launch.fused = fused;
    const exec::Outcome out = run(replaced(text_of("rms_norm"), body, edited), launch);
    EXPECT_TRUE(out.faults.empty());
    return out.faults.empty() ? worst(out, launch) : 0;
  };
  for (const exec::Fused fused : {exec::Fused::none, exec::Fused::left, exec::Fused::right}) {
    const double sum = error("(x_r[j] * factor + " + nothing + " * 1.0e7) * weight_r[j]", fused);
    EXPECT_TRUE(fused == exec::Fused::none ? sum < 1.01 : sum > 100) << sum;
    EXPECT_LT(error(body + " * where(" + nothing + " != 0.0, 2.0, 1.0)", fused), 1.01);
    EXPECT_LT(error(body + " * where(x_r[j] * factor - factor * x_r[j] < 0.0, 2.0, 1.0)", fused),
              1.01);
  }
}

TEST(Lines, of_several_warpgroups_hang_over_the_last_row_and_write_nothing_there) {
  exec::Launch launch = launch_of(false);
  launch.params["WARPGROUPS"] = 2;
  launch.grid = B * H * 2;
  const exec::Outcome out = run(text_of("rms_norm"), launch);
  ASSERT_TRUE(out.faults.empty()) << render(out.faults[0]);
  EXPECT_LT(worst(out, launch), 1.01);
}

TEST(Lines, that_are_no_elements_round_only_where_they_are_stored) {
  const exec::Launch launch = launch_of(true);
  const std::string text =
      replaced(text_of("add_rms_norm"), "weight_r, h_r, y_r: element[C]\n",
               "weight_r, y_r: element[C]\n    line h_r: real[C]\n    line o_r: element[C]\n");
  const exec::Outcome out = run(
      replaced(text, "store_line h_r -> h", "map_line o_r[j] = h_r[j]\n    store_line o_r -> h"),
      launch);
  ASSERT_TRUE(out.faults.empty()) << render(out.faults[0]);
  const exec::Outcome rounded = run(text_of("add_rms_norm"), launch);
  EXPECT_EQ(out.outputs.at("h").values, rounded.outputs.at("h").values);
  EXPECT_NE(out.outputs.at("y").values, rounded.outputs.at("y").values);
}

TEST(Lines, in_the_exact_reading_are_the_formula) {
  const exact::Algebra algebra(0, 5);
  exec::Launch launch = launch_of(true);
  uint64_t name = 0;
  for (auto& [tensor, t] : launch.tensors)
    for (double& v : t.values) v = double(++name);
  launch.algebra = &algebra;
  const exec::Outcome out = run(text_of("add_rms_norm"), launch);
  ASSERT_TRUE(out.faults.empty()) << render(out.faults[0]);
  const auto at = [&](const char* t, int64_t n) {
    return algebra.draw(uint64_t(launch.tensors.at(t).values[n]));
  };
  const int64_t row = 4;
  std::vector<exact::Element> h;
  exact::Element squares = algebra.integer(0);
  for (int64_t j = 0; j < C; ++j) {
    h.push_back(algebra.add(at("x", row * C + j), at("residual", row * C + j)));
    squares = algebra.add(squares, algebra.mul(h[j], h[j]));
  }
  const exact::Element mean = algebra.mul(squares, algebra.reciprocal(algebra.integer(C)));
  const exact::Element factor = algebra.rsqrt(algebra.add(mean, algebra.constant(kEps)));
  for (int64_t j : {0L, 7L, 8L, 1023L, 1024L, C - 1}) {
    const exact::Element y = algebra.mul(algebra.mul(h[j], factor), at("weight", j));
    EXPECT_TRUE(algebra.equal(out.exact.at("y")[row * C + j], y).holds) << j;
    EXPECT_TRUE(algebra.equal(out.exact.at("h")[row * C + j], h[j]).holds) << j;
    EXPECT_FALSE(algebra.equal(out.exact.at("y")[(row - 1) * C + j], y).holds) << j;
  }
}

TEST(Lines, that_are_wrong_end_the_run) {
  const std::string text = text_of("rms_norm");
  EXPECT_EQ(fault_of(text), "(none)");
  EXPECT_EQ(fault_of(replaced(text, "    set_line weight_r[j] = weight[j]\n", "")),
            "exec.uninitialised");
  EXPECT_EQ(fault_of(replaced(text, "    map_line y_r[j] = x_r[j] * factor * weight_r[j]\n", "")),
            "exec.uninitialised");
  EXPECT_EQ(fault_of(replaced(text, "-> y[c.b, c.h, m]", "-> y[c.b, c.h, 0]")),
            "exec.written_twice");
  EXPECT_EQ(fault_of(replaced(text, "-> y[c.b, c.h, m]", "-> y[c.b, c.h + 1, m]")), "exec.bounds");
  EXPECT_EQ(fault_of(replaced(text, "line x_r, weight_r, y_r: element[C]",
                              "line x_r, y_r: element[C]\n    line weight_r: element[C + 8]")),
            "exec.shape");
}

}  // namespace
}  // namespace kw
