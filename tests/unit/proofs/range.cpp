// What a program adds that leaves the range of its types: exponentials that nothing bounds, and
// fp16.
#include "proofs/reals/range.h"

#include <gtest/gtest.h>

#include "proofs/made.h"

namespace kw::proofs {
namespace {

std::string answer(const Made& made) {
  Diagnostics d;
  const auto program = tl::parse(make_source("program.tl", made.text), d);
  EXPECT_TRUE(program) << render(d) << made.text;
  return program ? out_of_range(*program, made.form) : "";
}

void expect_named(const Made& made, const std::string& part) {
  EXPECT_NE(answer(made).find(part), std::string::npos) << answer(made);
}

TEST(Range, an_exponential_without_a_reference_is_bounded_by_its_form) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    const Made made = made_of("score tanh(s * 0.001767766952966369) * 50.0\nkeep j <= i\n", target);
    EXPECT_EQ(answer(made), "");
    expect_named(with(made, "50.0 * log2e", "60.0 * log2e"), "may be 2^86.56");
    expect_named(with(made, "exp2(tanh(s[i, j] * 0.0017677669) * scale)",
                      "exp2(s[i, j] * 0.0017677669 * scale)"),
                 "nothing bounds");
    expect_named(with(made, "* scale)", "* scale + s[i, j])"), "nothing bounds");
  }
}

// The largest score is the least where the scale is negative, and what is dropped is then infinite.
TEST(Range, scores_are_multiplied_by_what_is_positive) {
  const Made made = made_of(kCausal, "sm_80");
  EXPECT_EQ(answer(made), "");
  expect_named(with(made, "online_max m, factor, s, slack, scale",
                    "online_max m, factor, s, slack, temperature"),
               "times `temperature`, which may be negative");
  expect_named(with(made, "s, slack, scale", "s, slack, -scale"), "may be negative");
}

TEST(Range, one_below_another_needs_no_bound) {
  EXPECT_EQ(answer(made_of("score sigmoid(s * 0.125)\nnormaliser none\n")), "");
}

TEST(Range, weights_in_fp16_need_a_reference) {
  const std::string relu = "score max(s * 0.125, 0.0)\nnormaliser none\n";
  EXPECT_EQ(answer(made_of(relu)), "");
  expect_named(made_of("dtype f16\n" + relu), "weights in fp16 without a reference");
  EXPECT_EQ(answer(made_of("dtype f16\nscore s * 0.125\n")), "");
}

TEST(Range, rows_that_a_pass_writes_in_fp16_are_the_functions_own) {
  const std::string normalised =
      "q_sum q[b, h, i, d] * q[b, h, i, d]\nq_row q[b, h, i, d] / max(sqrt(sum0), 0.0001)\nscore "
      "s\n";
  const Made made = made_of("dtype f16\n" + normalised, "sm_80");
  EXPECT_EQ(answer(made), "");
  expect_named(with(made, "r, j] / norm", "r, j] / norm * 1024.0"), "rows of fp16 times 1024");
  expect_named(with(made, "r, j] / norm", "r, j] / norm / 64.0"), "rows of fp16 times 0.015");
  expect_named(with(made, "let norm = max(", "let norm = 0.001 * max("), "rows of fp16 times 1000");
  EXPECT_EQ(answer(with(made_of(normalised, "sm_80"), "/ norm", "/ norm * 1024.0")), "");
}

TEST(Range, rows_that_a_pass_writes_in_fp16_are_multiplied_by_no_data) {
  const std::string scaled =
      "argument scales f32[B, H]\nq_row q[b, h, i, d] * scales[b, h]\nscore s * 0.125\n";
  expect_named(made_of("dtype f16\n" + scaled, "sm_80"), "rows of fp16 times data, `q[b, h, r, j]");
  EXPECT_EQ(answer(made_of(scaled, "sm_80")), "");
}

// A mean of squares less the square of the mean is below 0 where rows are nearly constant.
TEST(Range, roots_in_a_pass_are_of_no_difference) {
  const Made made = made_of(
      "k_sum k[b, h, j, d]\nk_sum (k[b, h, j, d] - sum0 * 0.0078125) * (k[b, h, j, d] - sum0 * "
      "0.0078125)\nk_row (k[b, h, j, d] - sum0 * 0.0078125) * rsqrt(sum1 * 0.0078125 + "
      "0.00001)\nscore s\n");
  EXPECT_EQ(answer(made), "") << made.text;
  const std::string square = "(k[b, h, r, j] - norm) * (k[b, h, r, j] - norm)";
  const Made squares = with(made, square, "k[b, h, r, j] * k[b, h, r, j]");
  expect_named(with(squares, "rsqrt(row_total2 * 0.0078125 +",
                    "rsqrt(row_total2 * 0.0078125 - norm * norm +"),
               "- norm * norm");
  expect_named(with(squares, "rsqrt(row_total2 * 0.0078125 +",
                    "rsqrt(row_total2 * 0.0078125 + norm * norm * -1.0 +"),
               "cancel");
}

// exp(x) / (1 + exp(x)) is no number where exp(x) is infinite; 1 / (1 + exp(-x)) is 1.
TEST(Range, exponentials_of_data_that_the_function_has_not_are_bounded) {
  const Made made = made_of("k_row sigmoid(k[b, h, j, d])\nscore s\n");
  EXPECT_EQ(answer(made), "") << made.text;
  const std::string right = "reciprocal(1.0 + exp2(-k[b, h, r, j] * log2e))";
  expect_named(with(made, right,
                    "exp2(k[b, h, r, j] * log2e) * reciprocal(1.0 + exp2(k[b, h, r, j] * log2e))"),
               "which nothing bounds");
  const std::string gated = "argument gates f32[H]\nscore s * 0.125\nepilogue o * ";
  EXPECT_EQ(answer(made_of(gated + "sigmoid(gates[h])\n")), "");
  EXPECT_EQ(answer(made_of(gated + "exp(gates[h])\n")), "");
}

}  // namespace
}  // namespace kw::proofs
