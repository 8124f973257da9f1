// Values that are put in the place of drawn ones: what they are, and that a case with them runs
// again as it ran.
#include "check/planted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "check/compared_numbers.h"
#include "check/far_scores.h"
#include "check/spread.h"
#include "edited_program.h"
#include "hand_captures.h"
#include "with_heads.h"

namespace kw::check {
namespace {

const spec::Capture& capture() {
  static const spec::Capture one = test::capture_of(
      test::with_heads(transfer::form_of("argument slopes f32[H]\nargument heat f32\n"
                                         "score s * heat + slopes[h] * f32(j - i)\n"),
                       8));
  return one;
}

spec::Problem planted(Planted what) {
  for (const Case& c : planted_cases(capture(), Options{})) {
    if (c.planted != what) continue;
    Diagnostics d;
    const auto problem = problem_of(capture().form, c, d);
    EXPECT_TRUE(problem) << render(d);
    return problem.value_or(spec::Problem{});
  }
  ADD_FAILURE() << "no case of " << name(what);
  return {};
}

TEST(Planted, zeros_and_ones_are_all_that_there_is) {
  const spec::Problem p = planted(Planted::bits);
  EXPECT_EQ(p.scalars.at("heat"), 1);
  for (const char* tensor : {"q", "slopes"}) {
    const auto& values = p.tensors.at(tensor).values;
    EXPECT_EQ(std::set<double>(values.begin(), values.end()), (std::set<double>{0, 1})) << tensor;
  }
}

// -1 in a table of pages is compared with 0: 1 in the place of others is no page of a cache of one.
TEST(Planted, tables_of_pages_are_as_drawn) {
  const spec::Form form = test::with_heads(
      transfer::form_of("argument table i32[B, T]\nscore s * 0.125\npages table 16\n"
                        "keep 0 <= table[b, j // 16]\n"),
      8);
  EXPECT_EQ(tensors_of_indices(form), std::set<std::string>{"table"});
  EXPECT_FALSE(has_compared_numbers(form));
}

TEST(Planted, rows_are_zero_or_equal) {
  const spec::Problem of_zeros = planted(Planted::zeros);
  const Tensor &q = of_zeros.tensors.at("q"), &k = of_zeros.tensors.at("k"),
               &v = of_zeros.tensors.at("v"), equal = planted(Planted::equal).tensors.at("k");
  const int64_t D = k.shape.back(), rows = k.shape[2];
  for (int64_t d = 0; d < D; ++d) {
    EXPECT_EQ(q.values[D + d], 0);
    EXPECT_EQ(k.values[d], 0);
    EXPECT_EQ(v.values[D + d], 0);
    EXPECT_EQ(equal.values[(rows - 1) * D + d], equal.values[d]);
    EXPECT_EQ(equal.values[rows * D + d], equal.values[(rows + 1) * D + d]);  // of the next head
  }
  EXPECT_NE(q.values[0], 0);
  EXPECT_NE(k.values[D], 0);
  EXPECT_NE(v.values[0], 0);  // and where k is 0, v is not
  EXPECT_NE(v.values[2 * D], 0);
  EXPECT_NE(equal.values[0], equal.values[rows * D]);
}

// A key past the end would have a score of 0, and so a weight beyond fp32.
TEST(Planted, scores_lie_far_below_zero_in_all_of_a_row_where_a_softmax_takes_them) {
  const auto cases_of = [](const std::string& form, Effort effort) {
    const spec::Capture of_form = test::capture_of(test::with_heads(transfer::form_of(form), 8));
    std::vector<double> found;  // of each such case the largest logsumexp of a row
    for (const Case& c : planted_cases(of_form, options_for(effort))) {
      if (c.planted != Planted::below) continue;
      Diagnostics d;
      const auto problem = problem_of(of_form.form, c, d);
      EXPECT_TRUE(problem) << render(d);
      const spec::Evaluated all = spec::evaluate(of_form.form, *problem);
      EXPECT_GT(problem->tensors.at("q").shape[2], problem->tensors.at("k").shape[2]);
      found.push_back(*std::max_element(all.lse.values.begin(), all.lse.values.end()));
    }
    return found;
  };
  for (const Effort effort : {Effort::quick, Effort::usual}) {
    const std::vector<double> found = cases_of("score s * 0.125\n", effort);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_LT(found[0], -89);
  }
  EXPECT_TRUE(cases_of("score tanh(s)\n", Effort::usual).empty());
  EXPECT_TRUE(cases_of("score s * 0.125\nsink 0.0\n", Effort::usual).empty());
}

// What is planted in the case of it that a check has; nothing where there is none.
std::optional<spec::Problem> problem_with(Planted what, const spec::Capture& of) {
  for (const Case& c : planted_cases(of, Options{})) {
    Diagnostics d;
    if (c.planted == what) return problem_of(of.form, c, d);
  }
  return std::nullopt;
}

TEST(Planted, sinks_lie_where_the_scores_do) {
  const spec::Capture of = test::capture_of(test::with_heads(
      transfer::form_of("argument sinks f32[H]\nscore s * 0.08838834764831845\nsink sinks[h]\n"),
      8));
  const auto low = problem_with(Planted::below, of), high = problem_with(Planted::above, of);
  ASSERT_TRUE(low && high);
  for (const auto& [problem, about] : {std::pair(low, -150.0), {high, 100.0}}) {
    for (const double x : problem->tensors.at("sinks").values) EXPECT_NEAR(x, about, 10);
    // Neither the sink nor the scores decide every row alone.
    int of_the_sink = 0, of_scores = 0;
    for (const double lse : spec::evaluate(of.form, *problem).lse.values) {
      EXPECT_NEAR(lse, about, 60);
      (lse > about + 10 ? of_scores : of_the_sink) += 1;
    }
    EXPECT_GT(of_scores, 10);
    EXPECT_GT(of_the_sink, 10);
  }
  EXPECT_FALSE(problem_with(Planted::above, capture()));
}

// Of each tile that reaches past the last key: its block, how many keys are past the end.
TEST(Planted, tiles_reach_past_the_last_key_by_few_and_many_of_scores_far_below_zero) {
  const spec::Capture of = test::capture_of(test::form_of("causal_bwd"));
  std::string text = test::text_of("causal_bwd");
  const auto found = [&](Effort effort) {
    std::set<std::pair<int64_t, int64_t>> tiles;
    for (const Case& c :
         cases_of_tails(*test::parsed("causal_bwd", text), of, options_for(effort))) {
      const int64_t N = c.sizes.at("N"), block = (N - 1) / 128, end = (block + 1) * 128;
      EXPECT_GT(c.sizes.at("M"), end + 64) << "queries that no diagonal masks";
      EXPECT_TRUE(lies_below(of.form, c));
      tiles.emplace(block, end - N);
    }
    return tiles;
  };
  using Tiles = std::set<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(found(Effort::quick), (Tiles{{0, 1}}));
  const Tiles all = {{0, 1}, {1, 1}, {2, 1}, {0, 64}, {1, 64}, {1, 127}};
  Tiles usual = found(Effort::usual);
  EXPECT_TRUE(std::includes(usual.begin(), usual.end(), all.begin(), all.end()));
  EXPECT_FALSE(usual.count({0, 37}));
  const std::string tail = "(c.n + 1) * BN > N";
  text.replace(text.find(tail), tail.size(), tail + " + 37");
  EXPECT_TRUE(found(Effort::usual).count({0, 37})) << "a number of the program's";
  EXPECT_TRUE(cases_of_tails(*test::parsed("causal", test::text_of("causal")),
                             test::capture_of(test::form_of("causal")), Options{})
                  .empty());
}

TEST(Planted, integers_are_all_over_the_positions_that_they_are_compared_with) {
  const spec::Capture of = test::capture_of(test::with_heads(
      transfer::form_of("argument own i32[B, 4]\nargument document i32[B]\nqueries 1\n"
                        "score s * 0.125\nkeep own[b, 0] == j // 64 or own[b, 1] == j // 64 or "
                        "own[b, 2] == j // 64 or own[b, 3] == j // 64 or j < document[b]\n"),
      8));
  const auto problem = problem_with(Planted::spread, of);
  ASSERT_TRUE(problem);
  const Tensor &own = problem->tensors.at("own"), &document = problem->tensors.at("document");
  ASSERT_EQ(problem->sizes.at("N"), 1300);
  std::set<size_t> places;
  for (size_t row = 0; row < own.values.size() / 4; ++row) {
    const auto first = own.values.begin() + int64_t(row) * 4;
    EXPECT_EQ(std::set<double>(first, first + 4).size(), 4u);
    const auto last = std::max_element(first, first + 4);
    EXPECT_EQ(*last, 1299 / 64);
    places.insert(last - first);
  }
  EXPECT_EQ(places.size(), 4u);
  EXPECT_EQ(*std::max_element(document.values.begin(), document.values.end()), 1300);
  // Where they are an index, too, nobody knows how far the table reaches.
  EXPECT_FALSE(has_spread(transfer::form_of(
      "argument own i32[B]\nargument table i32[32]\nkeep j < own[b] and 0 < table[own[b]]\n")));
  EXPECT_FALSE(has_spread(transfer::form_of(
      "argument document i32[B, N]\nkeep document[b, i] == document[b, j]\nqueries N\n")));
}

TEST(Planted, cases_say_what_is_planted) {
  std::set<std::string> said;
  for (const Case& c : planted_cases(capture(), Options{})) {
    const std::string text = describe(c);
    EXPECT_NE(text.find(name(c.planted)), std::string::npos) << text;
    said.insert(text);
  }
  EXPECT_EQ(said.size(), 7u);
  EXPECT_EQ(planted_cases(capture(), options_for(Effort::quick)).size(), 2u);
}

}  // namespace
}  // namespace kw::check
