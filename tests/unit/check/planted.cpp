// Values that are put in the place of drawn ones: what they are, and that a case with them runs
// again as it ran.
#include "check/planted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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

TEST(Planted, rows_are_zero_or_equal) {
  const Tensor zeros = planted(Planted::zeros).tensors.at("k"),
               equal = planted(Planted::equal).tensors.at("k");
  const int64_t D = zeros.shape.back(), rows = zeros.shape[2];
  for (int64_t d = 0; d < D; ++d) {
    EXPECT_EQ(zeros.values[D + d], 0);
    EXPECT_EQ(equal.values[(rows - 1) * D + d], equal.values[d]);
    EXPECT_EQ(equal.values[rows * D + d], equal.values[(rows + 1) * D + d]);  // of the next head
  }
  EXPECT_NE(zeros.values[0], 0);
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

TEST(Planted, cases_say_what_is_planted) {
  std::set<std::string> said;
  for (const Case& c : planted_cases(capture(), Options{})) {
    const std::string text = describe(c);
    EXPECT_NE(text.find(name(c.planted)), std::string::npos) << text;
    said.insert(text);
  }
  EXPECT_EQ(said.size(), 5u);
  EXPECT_EQ(planted_cases(capture(), options_for(Effort::quick)).size(), 2u);
}

}  // namespace
}  // namespace kw::check
