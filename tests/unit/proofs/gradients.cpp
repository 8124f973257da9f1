// The obligations of attention's gradients: what the rules make is proved, and a wrong token is
// found at its place, or left open with its reason.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "edited_program.h"
#include "in_clone.h"
#include "made.h"
#include "proofs/proofs.h"

namespace kw::proofs {
namespace {

const char* const kOfFull = "score s * 0.125\ngradients\n";
const std::string kOfCausal = std::string(kCausal) + "gradients\n";
const char* const kOfWindow = "score s * 0.125\nkeep j <= i and i - j < 1024\ngradients\n";
const char* const kOfDocuments =
    "argument document i32[B, N]\nscore s\n"
    "keep document[b, i] == document[b, j] and j <= i\nqueries N\ngradients\n";

// What is not proved, each as "what: where or why".
std::string left(const Made& made) {
  std::string out;
  for (const Obligation& o : proved(made).obligations)
    if (o.answer != Answer::proved)
      out += (out.empty() ? "" : "; ") + o.what + ": " + o.message + o.why;
  return out;
}

void expect_left(const Made& made, const std::string& what, const std::string& where) {
  const std::string said = left(made);
  EXPECT_NE(said.find(what), std::string::npos) << said;
  EXPECT_NE(said.find(where), std::string::npos) << said;
}

TEST(Gradients, of_programs_that_the_rules_made_are_proved) {
  for (const char* target : {"sm_90a", "sm_80"})
    for (const std::string& form :
         {std::string(kOfFull), kOfCausal, std::string(kOfWindow), std::string(kOfDocuments),
          std::string("score tanh(s * 0.02) * 50.0\ngradients\n"),
          std::string("argument slopes f32[H]\nscore s * 0.125 + slopes[h] * f32(j - i)\n"
                      "keep j <= i\ngradients\n"),
          std::string("normaliser none\nscore sigmoid(s * 0.125)\nkeep j <= i\ngradients\n"),
          std::string("normaliser sum\nscore max(s * 0.125, 0.0) * max(s * 0.125, 0.0)\n"
                      "keep j <= i\ngradients\n"),
          std::string("score s * 0.125\nkeep j <= i + N - M\ngradients\n")}) {
      SCOPED_TRACE(std::string(target) + "\n" + form);
      EXPECT_EQ(left(made_of(form, target)), "");
    }
}

TEST(Gradients, at_other_head_dimensions_are_proved) {
  for (const char* width : {"head_dim 256\n", "head_dim 96\n", "head_dim 64\n"})
    EXPECT_EQ(left(made_of(std::string(kCausal) + width + "gradients\n")), "") << width;
}

// Products of a turn that the next one makes: all turns but the first, and one behind the loop.
// Which turn is the first, the calls say and no name.
TEST(Gradients, of_products_a_turn_late_are_proved_where_each_turn_has_one) {
  const Made made{transfer::form_of("score s * 0.125\nhead_dim 64\ngradients\n"),
                  test::text_of("full_narrow_bwd")};
  EXPECT_EQ(left(made), "");
  Made other = with(made, "first: bool", "opening: bool");
  other = with(with(other, "if first:", "if opening:"), "if not first:", "if not opening:");
  EXPECT_EQ(left(other), "");
  const std::string late = "wgmma_add_transposed_a dk_r";
  for (const char* is : {"true", "x == 7", "x % 2 == 0"})
    expect_left(with(made, "advance(x, false)", fmt::format("advance(x, {})", is)), "", late);
  expect_left(with(made, "- 1, true)", "- 1, false)"), "", late);
  expect_left(with(made, "if not first:\n                wait ds_full",
                   "if first:\n                wait ds_full"),
              "", late);
}

// Blocks of keys take turns at a block of queries: by number, from the first that sees it.
TEST(Gradients, in_one_order_have_turns_that_come) {
  const auto in_order = [](const std::string& lines) {
    return made_of(transfer::form_of(lines), "sm_90a", true);
  };
  const char* const turn = "waits for the turn of the one before it";
  const Made causal = in_order(kOfCausal), window = in_order(kOfWindow),
             wide = in_order("score s * 0.125\nhead_dim 256\ngradients\n");
  for (const Made& made : {causal, window, wide, in_order(kOfFull)}) EXPECT_EQ(left(made), "");
  const std::string waits = "wait_turn turns[c.b, h, m * BM] == ";
  expect_left(with(causal, waits + "c.n", waits + "where(c.n < 5000, c.n, c.n + 1)"), turn, "");
  expect_left(with(causal, waits + "c.n", waits + "where(m < 5000, c.n, 0)"), turn, "");
  expect_left(with(causal, "return r // section", "return ceil_div(N, BN) - 1 - r // section"),
              turn, "launched first");
  expect_left(with(causal, "write_value turns[b, h, r] = 0.0", "write_value turns[b, h, r] = 1.0"),
              turn, "begin as 0");
  const std::string sees = "where(before.first <= m and m < before.first + before.count, c.n, 0)";
  for (const char* const other :
       {"c.n", "0", "where(before.first <= m, c.n, 0)",
        "where(before.first <= m and m < before.first + before.count - 1, c.n, 0)",
        "where(before.first <= m and m < before.first + before.count and m < 5000, c.n, 0)"})
    expect_left(with(window, sees, other), turn, "");
}

// Loops in which no weights are made go over all pairs, too.
TEST(Gradients, of_loops_without_scores_that_leave_out_turns_are_not_proved) {
  const Made made = made_of("score s * 0.125\nhead_dim 256\ngradients\n");
  const size_t of_sums = made.text.find("if me > 0:");
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"group * queries.count - 2, 0)",
                                            "group * queries.count - 3, 0)"},
        {"group * queries.count - 2, 0)", "group * queries.count - 2, 1)"}}) {
    Made other = made;
    other.text.replace(other.text.find(from, of_sums), from.size(), to);
    expect_left(other, "visited once", "all pairs of a head and a block of queries");
  }
}

// The row and the key of what is refuted are the user's: i a query's, j a key's.
TEST(Gradients, of_a_mask_that_is_wrong_from_one_size_on_are_refuted_there) {
  const Made made = made_of(kOfCausal);
  expect_left(
      with(made, "where(i <= j and i < N", "where(i <= j + where(N > 4096, 1, 0) and i < N"),
      "what this visit keeps", "the program keeps it: true, the specification keeps it: false");
  expect_left(with(made, "where(i <= j and i < N", "where(i <= j and i < max(N, 5000)"),
              "what this visit keeps", "the program keeps it: true");
  expect_left(with(made, "if (c.n + 1) * BN > N or", "if ((c.n + 1) * BN > N and N < 5000) or"),
              "what this visit keeps", "the program keeps it: true");
}

TEST(Gradients, of_queries_that_are_left_out_or_that_are_none_are_refuted) {
  const Made made = made_of(kOfCausal);
  expect_left(
      with(made, "max(1, ceil_div(M, BM) - first)", "max(1, min(ceil_div(M, BM) - first, 1000))"),
      "visited once", "visits of it: 0");
  expect_left(with(made, "max(0, c.n * BN) // BM", "max(0, (c.n + 1) * BN) // BM"), "visited once",
              "visits of it: 0");
  expect_left(with(made, "max(1, ceil_div(M, BM) - first)", "max(1, ceil_div(M, BM) - first + 1)"),
              "queries that there are", "");
  expect_left(with(made, "for t, x in range_down_rolled(group * queries.count - 2, 0):",
                   "for t, x in range_down_rolled(group * queries.count - 2, 1):"),
              "visited once", "all pairs of a head and a block of queries");
  expect_left(with(made, "advance(group * queries.count - 1, true)", "advance(0, true)"),
              "key blocks", "outside of loops over queries");
  expect_left(with(made, "advance(group * queries.count - 1, true)",
                   "advance(group * queries.count - 2, true)"),
              "key blocks", "not about the last of them");
}

TEST(Gradients, of_numbers_of_heads_rows_and_blocks_are_the_specifications) {
  const Made made = made_of(kOfCausal);
  const char* const integers = "made of the specification's integers";
  expect_left(with(made, "let h = c.g * group + x // queries.count",
                   "let h = where(N > 5000, c.g * group, c.g * group + x // queries.count)"),
              integers, "h");
  expect_left(with(made, "-> sum_dq[c.b, h, m * BM, r * DQ]",
                   "-> sum_dq[c.b, h, where(m > 90, 0, m) * BM, r * DQ]"),
              integers, "where(m > 90, 0, m) * BM");
  expect_left(
      with(made, "tma_load q[c.b, h, m * BM]", "tma_load q[c.b, h, where(m > 90, 0, m) * BM]"),
      integers, "where(m > 90, 0, m) * BM");
  expect_left(with(made, "let l = where(r < M, ", "let l = where(r < M and r < 9000, "), integers,
              "r < 9000");
  expect_left(with(made, "head % G, head // G", "head % G, head // B"),
              "each block of the output is computed once", "head // B");
}

TEST(Gradients, whose_turns_differ_have_another_form) {
  const Made made = made_of(kOfCausal);
  const char* const form = "adds to gradients, and hands on nothing else";
  const std::string p = "map dp[i, j] = dp[i, j] * s[i, j]";
  expect_left(with(made, p, p + " * 65536.0 * 0.0000152587890625"), form, "65536");
  expect_left(with(made, "map s[i, j] = exp2(s[i, j] * scale_log2)",
                   "map s[i, j] = exp2(s[i, j] * scale_log2) * 1.0"),
              form, "scale_log2) * 1.0");
  expect_left(with(made, "            to_operand p = s\n",
                   "            if x == 300:\n                fill dv_r = 0.0\n"
                   "            to_operand p = s\n"),
              form, "dv_r");
  // An exponential that nothing bounds: the log-sum is left out, and put in behind it.
  expect_left(with(made, "fill_columns s = offset_s[t]", "fill s = 0.0"), form, "exp2");
}

// A mask by which weights are left out is the gradient's where it is multiplied by them.
TEST(Gradients, that_are_not_multiplied_by_their_weights_are_refuted) {
  const Made made = made_of(kOfCausal);
  const std::string p = "map dp[i, j] = dp[i, j] * ";
  EXPECT_EQ(left(with(made, p + "s[i, j]", p + "(s[i, j] + 0.0)")), "");
  expect_left(with(made, p + "s[i, j]", p + "(s[i, j] + 0.001)"), "what this visit keeps",
              "the program keeps it: true");
  expect_left(with(made, p + "s[i, j]", p + "tanh(s[i, j])"), "key blocks", "tanh(s[i, j])");
}

}  // namespace
}  // namespace kw::proofs
