// Numbers far from 0 in the place of drawn ones: further arguments, products and what is taken off
// them, rows of a norm; and where a function cannot do them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "check/families/gemm_balanced.h"
#include "check/far_arguments.h"
#include "check/planted.h"
#include "hand_captures.h"
#include "operator/family.h"
#include "with_heads.h"

namespace kw::check {
namespace {

spec::Capture of_heads(const std::string& form) {
  return test::capture_of(test::with_heads(transfer::form_of(form), 8));
}

// What is planted in the case of it that a check has; nothing where there is none.
std::optional<spec::Problem> problem_with(Planted what, const spec::Capture& of) {
  for (const Case& c : planted_cases(of, Options{})) {
    Diagnostics d;
    if (c.planted == what) return problem_of(of.form, c, d);
  }
  return std::nullopt;
}

double least(const Tensor& t) { return *std::min_element(t.values.begin(), t.values.end()); }
double largest(const Tensor& t) { return *std::max_element(t.values.begin(), t.values.end()); }

TEST(PlantedFar, a_third_of_a_gates_elements_is_far_away_and_a_third_as_drawn) {
  const spec::Capture of =
      of_heads("argument slopes f32[H]\nscore s * 0.125\nepilogue o * relu(slopes[h])\n");
  const auto low = problem_with(Planted::far_below, of),
             high = problem_with(Planted::far_above, of);
  ASSERT_TRUE(low && high);
  for (const auto& [problem, sign] : {std::pair(low, -1.0), {high, 1.0}}) {
    const auto& gates = problem->tensors.at("slopes").values;
    EXPECT_EQ(gates[0], sign * 100) << "the first head of a case";
    const auto count = [&](double from, double to) {
      return std::count_if(gates.begin(), gates.end(),
                           [&](double x) { return std::fabs(x) >= from && std::fabs(x) <= to; });
    };
    EXPECT_EQ(count(90, 100), 3);
    EXPECT_EQ(count(30, 30), 1);
    EXPECT_EQ(count(0, 0), 1);
    EXPECT_EQ(count(1e-9, 10), 3);
  }
}

// A case runs a few of many heads, and draws no others: what is planted is as far for these.
TEST(PlantedFar, scores_lie_as_far_below_in_a_few_of_many_heads) {
  for (const int64_t heads : {8, 64}) {
    const spec::Capture of = test::capture_of(
        test::with_heads(transfer::form_of("score s * 0.125\nkeep j <= i\n"), heads));
    const std::vector<Case> cases = planted_cases(of, Options{});
    const auto below = std::find_if(cases.begin(), cases.end(),
                                    [](const Case& c) { return c.planted == Planted::below; });
    ASSERT_NE(below, cases.end()) << heads;
    EXPECT_LE(below->heads.size(), 8u);
    Diagnostics d;
    const auto problem = problem_of(of.form, *below, d);
    ASSERT_TRUE(problem) << render(d);
    spec::Evaluator evaluator(of.form, *problem);
    std::vector<double> output(evaluator.value_dim());
    const double lse = evaluator.row(0, below->heads[0], 0, output.data());
    EXPECT_GT(lse, -300) << heads;
    EXPECT_LT(lse, -100) << heads;
  }
}

// 1 less the sigmoid of 30 is 0 in fp32, and of 100 it is 0 for everybody.
TEST(PlantedFar, what_fp32_cannot_do_is_left_out) {
  const spec::Capture of = of_heads(
      "argument slopes f32[H]\nscore s * 0.125\nepilogue o * (1.0 - sigmoid(slopes[h]))\n");
  const auto low = problem_with(Planted::far_below, of),
             high = problem_with(Planted::far_above, of);
  ASSERT_TRUE(low && high);
  const auto has = [](const spec::Problem& p, double x) {
    const auto& values = p.tensors.at("slopes").values;
    return std::find(values.begin(), values.end(), x) != values.end();
  };
  EXPECT_TRUE(has(*low, -100) && has(*low, -30));
  EXPECT_TRUE(has(*high, 100) && !has(*high, 30));
}

TEST(PlantedFar, numbers_come_as_near_as_the_function_stays_finite) {
  // exp(100) is beyond fp32, and infinity by infinity none of the function's doing.
  const spec::Capture of = of_heads(
      "argument slopes f32[H]\nscore s * 0.125\n"
      "epilogue o * exp(slopes[h]) / (1.0 + exp(slopes[h]))\n");
  EXPECT_EQ(least(problem_with(Planted::far_below, of)->tensors.at("slopes")), -100);
  EXPECT_EQ(largest(problem_with(Planted::far_above, of)->tensors.at("slopes")), 30);
  // Of distances up to 200, scores that fp32 has bits for.
  const spec::Capture distances =
      of_heads("argument slopes f32[H]\nscore s * 0.125 + slopes[h] * f32(j - i)\n");
  EXPECT_EQ(largest(problem_with(Planted::far_above, distances)->tensors.at("slopes")), 3);
  // A logarithm has nothing below 0.
  const spec::Capture logarithm =
      of_heads("argument slopes f32[H]\nscore s * 0.125 + log(slopes[h])\n");
  EXPECT_FALSE(problem_with(Planted::far_below, logarithm));
}

TEST(PlantedFar, operands_and_their_rows_stay_as_they_are) {
  EXPECT_FALSE(has_far_arguments(test::form_of("rows")));
  EXPECT_FALSE(has_far_arguments(test::form_of("causal_bwd")));
  EXPECT_EQ(further_arguments(test::form_of("learned_bwd")),
            (std::vector<std::string>{"slopes", "bias", "sinks"}));
}

TEST(PlantedFar, fp32_rounds_every_operation) {
  const spec::Capture of = of_heads(
      "argument slopes f32[H]\nscore s * 0.125\n"
      "epilogue o * exp(slopes[h]) / (1.0 + exp(slopes[h]))\n");
  spec::Problem problem;
  problem.tensors["slopes"] = Tensor(Dtype::f32, {8});
  problem.tensors["slopes"].values[0] = 100;
  spec::Scope scope = scope_of(problem);
  scope.indices["h"] = 0, scope.output = 1;
  EXPECT_EQ(spec::evaluate(of.form.epilogue, scope), 1);
  EXPECT_TRUE(std::isnan(evaluate_in_fp32(of.form.epilogue, scope)));
}

spec::Capture of_product(const std::string& value) {
  spec::Form form = transfer::form_of("product\nargument lse f32[B, H, M]\nvalue " + value + "\n");
  form.B = {"B", 0}, form.M = {"M", 0}, form.N = {"N", 0}, form.D = {"", 64};
  for (spec::Argument& a : form.arguments) {
    if (a.name == "a") a.dims = {form.B, form.H, form.M, form.D};
    if (a.name == "b") a.dims = {form.B, form.H, form.D, form.N};
  }
  return test::capture_of(form);
}

TEST(PlantedFar, of_a_difference_in_an_exponential_both_sides_are_large) {
  const spec::Capture of = of_product("exp(s * 0.125 - lse[b, h, i])");
  const auto problem = problem_with(Planted::balanced, of);
  ASSERT_TRUE(problem);
  EXPECT_GT(least(problem->tensors.at("lse")), 89);
  EXPECT_LT(largest(problem->tensors.at("lse")), 200);
  const auto truth = spec::truth(of.form, *problem);
  truth->begin_head();
  for (int64_t i = 0; i < truth->rows(); i += 7) {
    truth->row(0, 1, i);
    const auto& row = truth->of(0).want;
    EXPECT_NEAR(*std::max_element(row.begin(), row.end()), 1, 1e-4);
  }
  EXPECT_FALSE(families::has_balanced(of_product("exp(s * 0.125) * lse[b, h, i]").form));
  EXPECT_FALSE(families::has_balanced(of_product("s - lse[b, h, i]").form));
}

// The largest element of the product in size, and the function's value there.
struct Far {
  double largest = 0, least = 0, value = 0;
};
Far far_elements(const std::string& value, Dtype dtype = Dtype::bf16) {
  spec::Capture of = of_product(value);
  of.form.dtype = dtype;
  for (spec::Argument& a : of.form.arguments)
    if (a.name != "lse") a.dtype = dtype;
  Far far;
  const auto problem = problem_with(Planted::products, of);
  if (!problem) return far;
  const Tensor &a = problem->tensors.at("a"), &b = problem->tensors.at("b");
  const int64_t M = a.shape[2], K = a.shape[3], N = b.shape[3];
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j) {
      double s = 0;
      for (int64_t d = 0; d < K; ++d) s += a.values[i * K + d] * b.values[d * N + j];
      EXPECT_EQ(s, double(float(s)));
      far.largest = std::max(far.largest, s), far.least = std::min(far.least, s);
    }
  const auto truth = spec::truth(of.form, *problem);
  truth->begin_head();
  for (int64_t i = 0; i < truth->rows(); ++i) {
    truth->row(0, 0, i);
    for (const double x : truth->of(0).want) far.value = std::max(far.value, std::fabs(x));
  }
  return far;
}

TEST(PlantedFar, elements_of_a_product_reach_as_far_as_its_result) {
  const Far plain = far_elements("s * 0.5");
  EXPECT_EQ(plain.largest, 0x1p110);
  EXPECT_EQ(plain.least, -0x1p110);
  const Far half = far_elements("s * 0.5", Dtype::f16);
  EXPECT_EQ(half.largest, 0x1p16);
  EXPECT_EQ(half.value, 0x1p15);
  // Of a sigmoid's both ends, where e / (1 + e) is infinity by infinity.
  const Far sigmoid = far_elements("sigmoid(s * 0.02)");
  EXPECT_EQ(sigmoid.largest, 0x1p110);
  EXPECT_EQ(sigmoid.value, 1);
  // An exponential has an end above and none below.
  const Far exponential = far_elements("exp(s)");
  EXPECT_EQ(exponential.largest, 0x1p6);
  EXPECT_LT(exponential.least, -0x1p100);
  // And a logarithm has nothing below.
  EXPECT_EQ(far_elements("log(s)").least, 0);
}

TEST(PlantedFar, of_the_ends_of_a_deep_product_the_middle_is_zero) {
  spec::Capture of = of_product("s");
  Case c = case_of(of, 1, 3, 5, 1);
  choose_heads(of.form, c, false);
  of.form.D = {"K", 0}, of.form.arguments[0].dims[3] = of.form.arguments[1].dims[2] = of.form.D;
  c.sizes["K"] = 5000;
  c.planted = Planted::ends;
  Diagnostics d;
  const auto problem = problem_of(of.form, c, d);
  ASSERT_TRUE(problem) << render(d);
  const auto& a = problem->tensors.at("a").values;
  EXPECT_NE(a[0], 0);
  EXPECT_NE(a[4999], 0);
  EXPECT_NE(a[5000], 0) << "of the next row";
  EXPECT_EQ(std::count(a.begin(), a.begin() + 5000, 0), 5000 - 160);
}

TEST(PlantedFar, rows_of_a_norm_reach_as_far_as_their_squares) {
  spec::Form form = transfer::form_of("norm x + residual\n");
  form.B = {"B", 0}, form.M = {"M", 0};
  for (spec::Argument& a : form.arguments)
    a.dims = a.name == "weight" ? std::vector<spec::Size>{form.D}
                                : std::vector<spec::Size>{form.B, form.M, form.D};
  const auto problem = problem_with(Planted::reach, test::capture_of(form));
  ASSERT_TRUE(problem);
  const Tensor &x = problem->tensors.at("x"), &residual = problem->tensors.at("residual");
  const int64_t C = x.shape.back(), rows = x.count() / C;
  int whole = 0, one = 0, small = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t huge = 0;
    double most = 0;
    for (int64_t n = row * C; n < (row + 1) * C; ++n) {
      huge += std::fabs(x.values[n]) == 0x1p50;
      const double sum = std::fabs(x.values[n] + residual.values[n]);
      EXPECT_LE(sum, 0x1p50 + 4);
      most = std::max(most, sum);
    }
    whole += huge == C;
    one += huge == 1;
    small += most < 0x1p-55;
  }
  EXPECT_GE(whole, 10);
  EXPECT_GE(one, 10);
  EXPECT_GE(small, 1);
  EXPECT_EQ(largest(residual), 0x1p50);
}

}  // namespace
}  // namespace kw::check
