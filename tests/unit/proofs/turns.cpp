// What a turn may do with reals: each condition of the form, by an edit that lacks it alone.
#include "proofs/reals/turns.h"

#include <gtest/gtest.h>

#include "proofs/made.h"

namespace kw::proofs {
namespace {

const char* const kSinks = "argument sinks f32[H]\nscore s * 0.125\nsink sinks[h]\n";
const char* const kSigmoid = "score sigmoid(s * 0.125)\nnormaliser none\n";

std::string form_of(const Made& made) {
  Diagnostics d;
  const auto program = tl::parse(make_source("program.tl", made.text), d);
  EXPECT_TRUE(program) << render(d) << made.text;
  if (!program) return "";
  Vocabulary vocabulary;
  std::map<std::string, Term> sizes;
  for (const char* letter : {"B", "H", "G", "M", "N"}) sizes[letter] = vocabulary.constant(letter);
  sizes["D"] = Term::number(128);
  return another_form(*program, made.form, sizes, vocabulary);
}

struct Edit {
  const char *from, *to, *named;
};

void expect_named(const Made& made, const std::vector<Edit>& edits) {
  EXPECT_EQ(form_of(made), "");
  for (const Edit& e : edits)
    EXPECT_NE(form_of(with(made, e.from, e.to)).find(e.named), std::string::npos)
        << e.from << "\nbecame\n"
        << e.to << "\nand was answered `" << form_of(with(made, e.from, e.to)) << "`";
}

const char* const kMax = "raised = online_max m, factor, s, slack, scale";
const char* const kWeigh = "map s[i, j] = exp2(fma(s[i, j], scale, -offset[i]))";
const char* const kScaled = "map_rows l[i] = l[i] * factor[i]";
const char* const kSum = "        row_sum l += s";
const char* const kOut = "    map acc[i, j] = acc[i, j] * inverse[i]";
const char* const kInverse =
    "map_rows inverse[i] = where(inverse[i] == 0.0, 0.0, reciprocal(inverse[i]))";

TEST(Turns, hand_on_one_reference_and_one_sum) {
  const Made made = made_of(kCausal, "sm_80");
  expect_named(
      made,
      {{kMax,
        "raised = online_max m2, factor, s, slack, scale\n        raised = online_max m, factor, "
        "s, slack, scale",
        "two references"},
       {kMax,
        "raised = online_max m, f2, s, slack, scale\n        raised = online_max m, factor, s, "
        "slack, scale",
        "two references"},
       {kSum, "        row_sum l += s\n        row_sum seen += s", "two sums, l and seen"},
       {kScaled, "map_rows l[i] = l[i] * factor[i]\n        map_rows visit[i] = visit[i] + 1.0",
        "`map_rows visit"},
       {kScaled, "map_rows l[i] = l[i] * factor[i] * 2.0", "`map_rows l["},
       {"row m, factor: real", "row m, factor: bf16", "`row m, factor: bf16"},
       {"lane_sum l: real", "lane_sum l: f16", "`lane_sum l: f16"},
       {"row sum = total(l), inverse = sum, lse_r = sum: real",
        "row sum = total(l), inverse = sum, lse_r = sum: f16", "lse_r = sum: f16"},
       {kScaled, "map_rows l[i] = l[i] * s[i]", "`map_rows l["},
       {kScaled, "map_rows l[i] = factor[i] * factor[i]", "`map_rows l["},
       {kScaled, "map_rows m[i] = m[i] * factor[i]", "`map_rows m["},
       {kScaled, "map_rows factor[i] = factor[i] * factor[i]", "`map_rows factor["},
       {"map acc[i, j] = acc[i, j] * factor[i]", "map acc[i, j] = acc[i, j] * 2.0", "`map acc["},
       {"flag raised", "flag raised\n    accumulator ones: real[ROWS, BN]\n    fill ones = 1.0",
        "`fill ones"},
       {kSum, "        row_sum l += ones", "`row_sum l += ones"},
       {kSum, "        row_sum l += s\n        any = any_differs l, 0.0", "any_differs"},
       {kSum, "        row_sum l += s\n        row_max m = s", "row_max"}});
}

TEST(Turns, begin_anew_in_each_block) {
  expect_named(
      made_of(kCausal, "sm_80"),
      {{"    fill acc = 0.0\n", "", "acc[i, j] * factor"},
       {"    fill l = 0.0\n", "", "`map_rows l["},
       {"    fill m = -inf\n", "", "online_max"},
       {"fill l = 0.0", "fill l = 1.0", "`fill l"},
       {"fill acc = 0.0", "fill acc = 1.0", "`fill acc"},
       {"fill m = -inf", "fill m = 1.0e9", "`fill m"},
       {"fill m = -inf", "let far = f32(N) * 0.01\n    fill m = far", "`fill m"},
       {"fill m = -inf", "fill m = l", "`fill m"},
       {"fill m = -inf", "fill factor = 0.0", "`fill factor"},
       {"    fill l = 0.0", "    if raised:\n        fill l = 0.0", "`fill l"},
       {kScaled, "map_rows l[i] = l[i] * factor[i]\n        fill m = -inf", "online_max m"},
       {kOut, "    map acc[i, j] = acc[i, j] * inverse[i]\n    mma_add acc += p @ v_s",
        "mma_add acc"},
       {kOut,
        "    map acc[i, j] = acc[i, j] * inverse[i]\n    map acc[i, j] = acc[i, j] * factor[i]",
        "* factor"}});
  const Made hopper = made_of(kCausal, "sm_90a");
  for (const char* name : {"acc", "l"}) {
    const std::string fill = std::string("fill ") + name + " = 0.0";
    const Made outside = with(with(hopper, "            " + fill + "\n", ""),
                              "        var t = 0\n        if PING_PONG",
                              "        " + fill + "\n        var t = 0\n        if PING_PONG");
    EXPECT_NE(form_of(outside), "") << name;
  }
}

TEST(Turns, make_their_scores_of_their_product_and_data) {
  const Made made = made_of(kCausal, "sm_80");
  expect_named(
      made,
      {{"mma s = q_s[me] @ k_s[n].T", "", "`map_at s["},
       {"mma s = q_s[me] @ k_s[n].T", "mma s = p @ k_s[n].T", "`mma s = p"},
       {"mma s = q_s[me] @ k_s[n].T", "mma s = acc @ k_s[n].T", "`mma s = acc"},
       {"mma s = q_s[me] @ k_s[n].T", "mma_add_transposed s += q_s[me] @ k_s[n].T",
        "mma_add_transposed"},
       {"mma s = q_s[me] @ k_s[n].T", "if raised:\n            mma s = q_s[me] @ k_s[n].T",
        "`map_at s["},
       {kMax,
        "map s[i, j] = s[i, j] + m[i]\n        raised = online_max m, factor, s, slack, scale",
        "s[i, j] + m[i]"},
       {kMax,
        "map s[i, j] = s[i, j] + acc[i, j]\n        raised = online_max m, factor, s, slack, scale",
        "acc[i, j]"},
       {kMax,
        "set_columns b_j[j] from 0 = l[j]\n        raised = online_max m, factor, s, slack, scale",
        "set_columns"},
       {kMax, "set_rows l[i] from 0 = 1.0\n        raised = online_max m, factor, s, slack, scale",
        "set_rows l"},
       {kMax, "let most = m\n        raised = online_max m, factor, s, slack, scale", "let most"},
       {kMax, "store s -> q_s[me]\n        raised = online_max m, factor, s, slack, scale",
        "store s"},
       {kMax, "get_rows r_s[n] -> x\n        raised = online_max m, factor, s, slack, scale",
        "get_rows"},
       {kMax,
        "store_rows m -> lse[c.b, c.h, i0]\n        raised = online_max m, factor, s, slack, scale",
        "store_rows"},
       {"to_operand p = s", "to_operand p = acc", "to_operand p = acc"},
       {"mma_add acc += p @ v_s", "mma_add acc += q_s[me] @ v_s", "mma_add acc += q_s"}});
}

TEST(Turns, weigh_by_a_reference_that_was_asked_for) {
  const Made made = made_of(kCausal, "sm_80");
  expect_named(
      made,
      {{kMax, "raised = online_max m, factor, q, slack, scale", "online_max m, factor, q"},
       {"        if partial:\n            map_at",
        "        row_sum l += s\n        if partial:\n            map_at", "`row_sum l"},
       {kWeigh, "map s[i, j] = exp2(fma(s[i, j], scale, 110.0 - offset[i]))", "110.0 - offset"},
       {kWeigh, "map s[i, j] = exp2(fma(s[i, j], unscale, -offset[i]))", "unscale, -offset"},
       {kWeigh, "map s[i, j] = exp2(fma(q[i, j], scale, -offset[i]))", "fma(q["},
       {kWeigh, "map s[i, j] = exp2(s[i, j] * scale)", "exp2(s["},
       {kWeigh,
        "map s[i, j] = s[i, j] * 2.0\n        map s[i, j] = exp2(fma(s[i, j], scale, -offset[i]))",
        "`map s[i, j] = s[i, j] * 2.0"},
       {kWeigh,
        "map s[i, j] = exp2(fma(s[i, j], scale, -offset[i]))\n        map s[i, j] = s[i, j] * 2.0",
        "`map s[i, j] = s[i, j] * 2.0"},
       {"raised = online_max m, factor, s, slack, scale",
        "raised = online_max m, factor, s, slack, steep", "exp2(fma"},
       {kMax,
        "raised = online_max m, factor, s, slack, scale\n        raised = online_max m, factor, s, "
        "slack, scale",
        "online_max"},
       {"offset[i] * scale)", "offset[i] * steep)", "exp2(fma"},
       {"offset[i] == -inf, 0.0", "offset[i] == -inf, 1.0", "map_rows offset"},
       {"offset[i] == -inf, 0.0", "offset[i] == 0.0, 0.0", "map_rows offset"},
       {"row offset = m: real[ROWS]", "row offset = l: real[ROWS]", "row offset"},
       {"map_rows offset[i] = where(offset[i] == -inf, 0.0, offset[i] * scale)", "", "exp2(fma"},
       {"row offset = m: real[ROWS]",
        "row offset = m: real[ROWS]\n        if raised:\n            map_rows offset[i] = "
        "where(offset[i] == -inf, 0.0, offset[i] * scale)",
        "map_rows offset"}});
}

TEST(Turns, that_ask_late_make_their_weights_anew) {
  const Made made = made_of(kCausal);
  expect_named(
      made,
      {{"                if late:\n                    raised = any_exceeds m, fresh, 4096.0\n", "",
        "to_operand p"},
       {"raised = any_exceeds m, fresh, 4096.0", "raised = any_exceeds m, l, 4096.0",
        "any_exceeds"},
       {"if CHECK_LATE and not partial and raised:", "if CHECK_LATE and partial and raised:",
        "to_operand p"},
       {"if CHECK_LATE and not partial and raised:", "if CHECK_LATE and n < 4 and raised:",
        "to_operand p"},
       {"if CHECK_LATE and not partial and raised:",
        "if CHECK_LATE and not partial and not raised:", "to_operand p"},
       {"softmax(n, partial, false)", "softmax(n, partial, true)", "to_operand p"},
       {"row_sum fresh += s", "row_sum l += s\n                row_sum fresh += s", "row_sum l"},
       {"add l += fresh", "add l += l", "add l += l"},
       {"                fill fresh = 0.0\n                row_sum fresh += s",
        "                row_sum fresh += s\n                fill fresh = 0.0", "row_sum fresh"}});
}

TEST(Turns, have_no_constants_that_grow) {
  expect_named(
      made_of(kCausal, "sm_80"),
      {{kMax,
        "map s[i, j] = s[i, j] * 1.0e9 * 1.0e9\n        raised = online_max m, factor, s, slack, "
        "scale",
        "1.0e9"},
       {kMax,
        "map s[i, j] = s[i, j] * 1.0e9\n        map s[i, j] = s[i, j] / 1.0e9\n        raised = "
        "online_max m, factor, s, slack, scale",
        "* 1.0e9"},
       {kMax,
        "map s[i, j] = s[i, j] * 1000000000 * 1000000000\n        raised = online_max m, factor, "
        "s, slack, scale",
        "1000000000"},
       {kMax,
        "let a = 1.0e9 * 1.0e9\n        map s[i, j] = s[i, j] * a\n        raised = online_max m, "
        "factor, s, slack, scale",
        "* a"},
       {kMax,
        "set_rows a_i[i] from i0 = q[c.b, c.h, i, 0] * 1.0e18\n        map s[i, j] = s[i, j] + "
        "a_i[i] - a_i[i]\n        raised = online_max m, factor, s, slack, scale",
        "a_i[i]"},
       {kMax,
        "map s[i, j] = where(j < 4, s[i, j], s[i, j] * 1.0e18)\n        raised = online_max m, "
        "factor, s, slack, scale",
        "1.0e18"},
       {kOut, "    map acc[i, j] = acc[i, j] * 1.0e9 * 1.0e9 * inverse[i]", "`map acc["},
       {kInverse, "map_rows inverse[i] = reciprocal(inverse[i] * 1.0e18)", "map_rows inverse"}});
  const Made far = with(made_of(kCausal, "sm_80"), "    slack: f32",
                        "    far: f32 = 1.0e9 * 1.0e9\n    slack: f32");
  EXPECT_NE(form_of(with(far, kMax, std::string("map s[i, j] = s[i, j] * far\n        ") + kMax)),
            "");
  expect_named(made_of(kSigmoid, "sm_80"), {{"exp2(", "exp2(60.0 + ", "60.0"},
                                            {"exp2(", "exp2(fma(s[i, j], 1.0, 60.0) + ", "60.0"}});
}

TEST(Turns, are_finished_by_a_formula_of_a_low_degree) {
  const Made made = made_of(kCausal, "sm_80");
  expect_named(
      made,
      {{kInverse,
        "map_rows inverse[i] = reciprocal(inverse[i] * inverse[i] * inverse[i] * inverse[i])",
        "map_rows inverse"},
       {kInverse,
        "map_rows inverse[i] = inverse[i] * inverse[i]\n    map_rows inverse[i] = inverse[i] * "
        "inverse[i]",
        "map_rows inverse"},
       {kOut, "    map acc[i, j] = acc[i, j] * inverse[i] * inverse[i]", "`map acc["},
       {kInverse, "map_rows inverse[i] = inverse[i] * inverse[i]", "map_rows inverse"},
       {"where(inverse[i] == 0.0,", "where(inverse[i] == 4096.0,", "map_rows inverse"},
       {"where(inverse[i] == 0.0,", "where(inverse[i] < 0.0,", "map_rows inverse"},
       {"where(inverse[i] == 0.0,", "where(m[i] == 0.0,", "map_rows inverse"},
       {"where(inverse[i] == 0.0,", "where(inverse[i] == -inf,", "map_rows inverse"},
       {kInverse,
        "map_rows inverse[i] = inverse[i] - 4096.0\n    map_rows inverse[i] = where(inverse[i] == "
        "0.0, 0.0, reciprocal(inverse[i]))",
        "where(inverse[i] == 0.0"},
       {kInverse,
        "if raised:\n        map_rows inverse[i] = inverse[i] - 4096.0\n    map_rows inverse[i] = "
        "where(inverse[i] == 0.0, 0.0, reciprocal(inverse[i]))",
        "where(inverse[i] == 0.0"},
       {kInverse,
        "if raised:\n        map_rows inverse[i] = inverse[i] * inverse[i] * inverse[i]\n    "
        "map_rows inverse[i] = inverse[i] * inverse[i]",
        "map_rows inverse[i] = inverse[i] * inverse[i]"}});
  EXPECT_EQ(form_of(with(made, "where(inverse[i] == 0.0,", "where(m[i] == -inf,")), "");
  EXPECT_EQ(form_of(made_of(kSinks)), "");
}

TEST(Turns, take_no_detours) {
  const Made made = made_of(kCausal, "sm_80");
  const std::string max = kMax;
  const auto before = [&](const std::string& map) { return map + "\n        " + max; };
  for (const char* map :
       {"map s[i, j] = s[i, j] * s[i, j]", "map s[i, j] = s[i, j] + s[i, j] * f32(D)",
        "map s[i, j] = exp2(s[i, j])", "map s[i, j] = max(s[i, j], 0.0)",
        "map s[i, j] = where(s[i, j] < 0.0, s[i, j], 0.0)",
        "map_real s[i, j] from (i0, n * BN) = max(j - i, -5000000.0)"})
    EXPECT_NE(form_of(with(made, kMax, before(map))).find("`map"), std::string::npos) << map;
  const std::string doubled = before("map s[i, j] = s[i, j] + s[i, j]");
  EXPECT_EQ(form_of(with(made, kMax, doubled)), "");  // of one degree: what it is, cases show
  const Made slopes =
      made_of("argument slopes f32[H]\nscore s * 0.125 - slopes[h] * (i - j)\n", "sm_80");
  expect_named(slopes, {{"let slope = slopes[c.h] * unscale",
                         "let slope = slopes[c.h] * slopes[c.h] * unscale", "slope * (j - i)"},
                        {"let slope = slopes[c.h] * unscale",
                         "let slope = exp2(slopes[c.h]) * unscale", "let slope"}});
  expect_named(made, {{"fill m = -inf", "fill m = -8192.0", "`fill m"},
                      {"fill m = -inf", "fill m = 0.0", "`fill m"},
                      {kOut, "    map acc[i, j] = acc[i, j] * inverse[i] * f32(D)", "`map acc["}});
}

TEST(Turns, have_no_terms_that_cancel) {
  const Made made = made_of(kCausal, "sm_80");
  const std::string max = kMax, plus = "map s[i, j] = s[i, j] + 4096.0\n",
                    minus = "        map s[i, j] = s[i, j] - 4096.0\n        ";
  expect_named(made,
               {{kMax, (plus + minus + max).c_str(), "+ 4096.0"},
                {kMax, (minus.substr(8) + max).c_str(), "- 4096.0"},
                {kMax, ("if raised:\n            " + plus + minus + max).c_str(), "+ 4096.0"},
                {kOut, "    map acc[i, j] = (acc[i, j] + 16.0) * inverse[i] - 16.0 * inverse[i]",
                 "`map acc["}});
  const std::string sigmoid = "reciprocal(1.0 + exp2(-gates[c.h] * log2e))";
  const Made gated =
      made_of("argument gates f32[H]\nscore s * 0.125\nepilogue o * sigmoid(gates[h])\n");
  for (const char* as : {"(1.0 - reciprocal(1.0 + exp2(gates[c.h] * log2e)))",
                         "(0.5 + 0.5 * tanh(gates[c.h] * 0.5))",
                         "(reciprocal(1.0 + exp2(-gates[c.h] * log2e)) + 1.0 - 1.0)"})
    EXPECT_NE(form_of(with(gated, sigmoid, as)), "") << as;
  EXPECT_EQ(form_of(with(gated, sigmoid, "(1.0 * " + sigmoid + ")")), "");
  const Made scaled = made_of(
      "argument slopes f32[H]\nargument beta f32\nscore s * beta + slopes[h] * (j - i)\n", "sm_80");
  expect_named(
      scaled,
      {{"let slope = slopes[c.h] * unscale",
        "let slope = slopes[c.h] * unscale * unscale * scale * ln2", "let slope"},
       {"scale: f32 = beta * log2e", "scale: f32 = beta * beta / beta * log2e", "scale ="},
       {"scale: f32 = beta * log2e", "scale: f32 = (beta + 8.0 - 8.0) * log2e", "scale ="}});
  // What the function has in its gate is no function of its scores.
  EXPECT_NE(form_of(with(gated, kMax, "map s[i, j] = log2(exp2(s[i, j]))\n                " + max))
                .find("log2(exp2("),
            std::string::npos);
  // Where the function's own terms cancel, a program's may.
  const Made own =
      made_of("argument gates f32[H]\nscore s * 0.125\nepilogue o * (1.0 - sigmoid(gates[h]))\n");
  EXPECT_EQ(form_of(own), "");
}

TEST(Turns, multiply_no_difference_out) {
  const Made made = made_of(
      "argument slopes f32[H]\nargument time f32[B, N]\nscore s * 0.125 + slopes[h] * (time[b, i] "
      "- time[b, "
      "j])\n",
      "sm_80");
  expect_named(made, {{"slope * (time_i[i] - time_j[j])", "slope * time_i[i] - slope * time_j[j]",
                       "- slope * time_j"},
                      {"slope * (time_i[i] - time_j[j])",
                       "fma(slope, time_i[i], -slope * time_j[j])", "fma(slope"}});
  // With a number of the launch, a difference of two elements.
  expect_named(
      made_of("argument time f32[B, N]\nscore s * 0.125 + (time[b, i] - time[b, j])\n", "sm_80"),
      {{"unscale * (time_i[i] - time_j[j])", "unscale * time_i[i] - unscale * time_j[j]",
        "- unscale * time_j"},
       {"unscale * (time_i[i] - time_j[j])", "(8.1 * time_i[i] - 8.1 * time_j[j])",
        "8.1 * time_j"}});
  // The function's own.
  EXPECT_EQ(form_of(made_of("argument slopes f32[H]\nargument time f32[B, N]\nscore s * 0.125 + "
                            "(slopes[h] * time[b, i] - slopes[h] * time[b, j])\n",
                            "sm_80")),
            "");
  // One of two branches is taken.
  EXPECT_EQ(form_of(made_of(
                "argument table f32[H, R]\nargument slopes f32[H]\nscore s * 0.125 + table[h, "
                "min(max(j - i, -16), 16) + 16] + slopes[h] * f32(j - i)\n")),
            "");
}

TEST(Turns, leave_loaders_to_load) {
  const char* const free = "wait_free v_free[t]";
  expect_named(made_of(kCausal), {{free, "map_rows x[i] = x[i] + 1.0", "map_rows x"},
                                  {free, "row_max x = s", "row_max x"},
                                  {free, "set_rows x[i] from 0 = 1.0", "set_rows x"},
                                  {free, "mma_add s += p @ v_s[t]", "mma_add s"}});
}

}  // namespace
}  // namespace kw::proofs
