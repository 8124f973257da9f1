// What single statements compute, seen by an observer or in a small plan.
#include <gtest/gtest.h>

#include <cmath>

#include "edited_program.h"
#include "exec/arithmetic.h"
#include "exec/exec.h"

namespace kw {
namespace {

using exec::Fn;
using exec::Type;

double value(Fn fn, Type type, double a, double b = 0, double c = 0) {
  double out = 0;
  exec::apply(fn, type, 1, &a, &b, &c, &out);
  return out;
}

TEST(Arithmetic, of_integers_floors_and_of_reals_rounds_once_to_fp32) {
  EXPECT_EQ(value(Fn::floor_div, Type::integer, -7, 2), -4);
  EXPECT_EQ(value(Fn::floor_mod, Type::integer, -7, 2), 1);
  EXPECT_EQ(value(Fn::ceil_div, Type::integer, -7, 2), -3);
  EXPECT_EQ(value(Fn::ceil_div, Type::integer, 7, 2), 4);
  EXPECT_EQ(value(Fn::add, Type::integer, 16777216, 1), 16777217);
  EXPECT_EQ(value(Fn::bit_and, Type::integer, -1, 1 << 30), 1 << 30);
  EXPECT_EQ(value(Fn::bit_or, Type::integer, -8, 5), -3);
  EXPECT_EQ(value(Fn::bit_xor, Type::integer, -1, 5), -6);
  EXPECT_EQ(value(Fn::shift_right, Type::integer, -7, 1), -4);
  EXPECT_EQ(value(Fn::shift_right, Type::integer, -2147483648.0, 31), -1);
  EXPECT_EQ(value(Fn::shift_left, Type::integer, 1, 31), -2147483648.0);
  EXPECT_EQ(value(Fn::shift_left, Type::integer, 3, 31), -2147483648.0);
  for (const double count : {-1, 32, 33}) {
    EXPECT_EQ(value(Fn::shift_left, Type::integer, 5, count), 0);
    EXPECT_EQ(value(Fn::shift_right, Type::integer, -5, count), -1);
    EXPECT_EQ(value(Fn::shift_right, Type::integer, 5, count), 0);
  }
  EXPECT_EQ(value(Fn::add, Type::real, 16777216, 1), 16777216);
  EXPECT_EQ(value(Fn::divide, Type::real, 1, 3), double(1.0f / 3.0f));
  // 1 + 2^-23 squared, minus its own fp32 rounding: only a fused product keeps 2^-46.
  const double x = 1 + std::ldexp(1.0, -23);
  EXPECT_EQ(value(Fn::fma, Type::real, x, x, -(1 + std::ldexp(1.0, -22))), std::ldexp(1.0, -46));
  EXPECT_EQ(value(Fn::exp2, Type::real, -INFINITY), 0);
  EXPECT_EQ(value(Fn::max, Type::real, NAN, 3), 3);
}

TEST(Arithmetic, refuses_operands_that_do_not_go_together) {
  const Type mixed[3] = {Type::boolean, Type::integer, Type::none};
  EXPECT_EQ(exec::result_type(Fn::add, mixed), Type::none);
  const Type integers[3] = {Type::integer, Type::integer, Type::none};
  EXPECT_EQ(exec::result_type(Fn::divide, integers), Type::none);
  EXPECT_EQ(exec::result_type(Fn::logical_and, integers), Type::none);
}

TEST(Arithmetic, takes_as_many_heads_at_once_as_fit_in_l2_and_divide) {
  EXPECT_EQ(exec::heads_at_once(4096 * 512, 16, 4, 64), 64);
  EXPECT_EQ(exec::heads_at_once(16384 * 512, 64, 4, 64), 16);
  EXPECT_EQ(exec::heads_at_once(int64_t{1} << 31, 64, 4, 66), 2);
}

TEST(Arithmetic, takes_more_heads_at_once_where_they_have_few_blocks) {
  EXPECT_EQ(exec::heads_at_once(16384 * 1024, 64, 1, 8), 4);
  EXPECT_EQ(exec::heads_at_once(16384 * 1024, 64, 4, 8), 8);
  EXPECT_EQ(exec::heads_at_once(16384 * 384, 43, 1, 16), 8);
  EXPECT_EQ(exec::heads_at_once(int64_t{1} << 31, 100, 1, 8), 2);
  EXPECT_EQ(exec::heads_at_once(int64_t{1} << 31, 200, 1, 8), 1);
}

// out[b, h, i] of a plan whose body is `text`.
std::vector<double> run_plan(const std::string& text) {
  const std::string head =
      "element bf16\n"
      "param R = 64\n"
      "args:\n"
      "    y: out f32[B, H, M]\n"
      "    B, H, M: size\n"
      "plan p:\n"
      "    for b, h in grid(B, H):\n"
      "        accumulator s: real[64, 16]\n"
      "        lane_sum l: real[64]\n"
      "        row m, factor: real[64]\n"
      "        flag raised\n"
      "        fill l = 0.0\n"
      "        fill m = -inf\n"
      "        fill s = 1.0\n";
  const auto program = test::parsed("plan", head + text + "        store_rows m -> y[b, h, 0]\n");
  if (!program) return {};
  exec::Launch launch;
  launch.scalars = {{"B", 1}, {"H", 2}, {"M", 40}};
  const exec::Outcome out = exec::run(*program, launch);
  for (const Diagnostic& d : out.faults) ADD_FAILURE() << render(d);
  return out.outputs.at("y").values;
}

TEST(Partial, has_four_lanes_each_with_its_share) {
  // 16 ones a row, and 1 for each lane.
  const auto y = run_plan(
      "        row_sum l += s\n"
      "        map_rows l[i] = l[i] + 1.0\n"
      "        row sum = total(l): real[64]\n"
      "        map_rows m[i] = sum[i]\n");
  ASSERT_EQ(y.size(), 80u);
  for (double v : y) EXPECT_EQ(v, 20);
}

TEST(Rows, past_the_end_are_dropped_and_row_max_keeps_the_larger) {
  const auto y = run_plan(
      "        row_max m = s\n"
      "        map s[i, j] = s[i, j] - 3.0\n"
      "        row_max m = s\n");
  ASSERT_EQ(y.size(), 80u);
  for (double v : y) EXPECT_EQ(v, 1);
}

TEST(Raise, keeps_the_reference_within_slack_and_gives_the_factor_beyond) {
  const std::string raise = "        raised = online_max m, factor, s, 8.0, 0.5\n";
  EXPECT_EQ(run_plan(raise)[0], 1);
  // Up to 9: within slack of 1, the reference stays.
  EXPECT_EQ(run_plan(raise + "        map s[i, j] = s[i, j] + 8.0\n" + raise)[0], 1);
  // 10: beyond; it becomes the maximum, and the factor is 2^((1 - 10) / 2).
  const std::string beyond = raise + "        map s[i, j] = s[i, j] + 9.0\n" + raise;
  EXPECT_EQ(run_plan(beyond)[0], 10);
  EXPECT_EQ(run_plan(beyond + "        map_rows m[i] = factor[i]\n")[0],
            double(static_cast<float>(std::exp2(-4.5))));
}

TEST(Map, evaluates_rows_names_and_literals_in_fp32) {
  const auto y = run_plan(
      "        fill m = 0.5\n"
      "        map s[i, j] = where(s[i, j] == 1.0, fma(s[i, j], m[i], 0.1), 0.0)\n"
      "        fill m = -inf\n"
      "        row_max m = s\n");
  ASSERT_FALSE(y.empty());
  EXPECT_EQ(y[0], double(0.5f + 0.1f));
}

}  // namespace
}  // namespace kw
