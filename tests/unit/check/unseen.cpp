// What cases do not see is named, and what they see is not.
#include "check/unseen.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "hand_captures.h"
#include "with_heads.h"

namespace kw::check {
namespace {

Unseen unseen_of(const std::string& lines, int64_t rows, bool statements,
                 const std::string& target = "sm_80") {
  const spec::Capture capture = test::capture_of(test::with_heads(transfer::form_of(lines), 8));
  Diagnostics d;
  const auto [kernel, machine] = transfer::start_of(capture.form, target);
  const auto made = transfer::transfer(kernel, capture.form, machine, d);
  EXPECT_TRUE(made) << render(d);
  std::vector<Case> cases;
  for (const int64_t m : {int64_t{70}, rows}) {
    cases.push_back(case_of(capture, 1, m, m, uint64_t(m)));
    choose_heads(capture.form, cases.back(), false);
  }
  Options options;
  options.leave_out = statements;
  return made ? unseen(made->program, capture, cases, options) : Unseen{};
}

const char* const kWindow = "score s * 0.125\nkeep j <= i and i - 300 < j\n";

TEST(Unseen, are_numbers_beyond_the_cases) {
  const Unseen few = unseen_of(kWindow, 90, false), enough = unseen_of(kWindow, 310, false);
  EXPECT_EQ(few.numbers, 1);
  ASSERT_EQ(few.changes.size(), 1u);
  EXPECT_EQ(few.changes[0].rfind("301 for 300 in ", 0), 0u) << few.changes[0];
  EXPECT_EQ(enough.numbers, 1);
  EXPECT_EQ(enough.changes, std::vector<std::string>{});
  EXPECT_NE(print(few).find("the cases do not see: 301 for 300"), std::string::npos) << print(few);
  EXPECT_NE(print(enough).find("the cases see each"), std::string::npos) << print(enough);
}

TEST(Unseen, are_numbers_that_change_nothing) {
  const Unseen u = unseen_of("score s * 0.125\nkeep j <= i or j < max(i - 7, i - 9)\n", 90, false);
  EXPECT_EQ(u.numbers, 2);
  EXPECT_EQ(u.changes.size(), 2u) << print(u);
}

// Which of two is the greater says nothing where they are equal.
TEST(Unseen, are_comparisons_of_reals_that_no_case_has_equal) {
  const auto of = [](const std::string& score) {
    return unseen_of("argument x f32[B, N]\nscore s * 0.125 + " + score + "\n", 90, false);
  };
  const Unseen u = of("where(0.5 < x[b, j], 1.0, 0.0)");
  EXPECT_EQ(u.comparisons, 1);
  ASSERT_EQ(u.undecided.size(), 1u) << print(u);
  EXPECT_EQ(u.undecided[0].rfind("0.5 <= x[b, j] for 0.5 < x[b, j] in ", 0), 0u) << u.undecided[0];
  EXPECT_EQ(of("where(x[b, j] < 0.5, 0.5, x[b, j])").comparisons, 0);
  EXPECT_EQ(of("where(x[b, j] == 2.0, 1.0, 0.0)").undecided.size(), 1u);
}

TEST(Unseen, are_numbers_in_conditions_that_no_case_has) {
  const Unseen of_entries =
      unseen_of("score s * 0.125 + where(b == 100, 1.0, 0.0) * f32(j)\n", 90, false);
  ASSERT_EQ(of_entries.undecided.size(), 1u) << print(of_entries);
  EXPECT_EQ(of_entries.undecided[0].rfind("False for b == 100 in ", 0), 0u)
      << of_entries.undecided[0];
  EXPECT_EQ(unseen_of(kWindow, 90, false).undecided, std::vector<std::string>{});  // a mask's
  const Unseen of_index = unseen_of(
      "argument table f32[129]\nscore s * 0.125 + table[where(b == 100, 1, 0)]\n", 90, false);
  EXPECT_EQ(of_index.undecided.size(), 1u) << print(of_index);
  // Both ways give 8 at 8: the condition turns all the same.
  const Unseen of_buckets = unseen_of(
      "argument table f32[129]\nscore s * 0.125 + table[where(i < 8, i, 8)]\n", 90, false);
  EXPECT_EQ(of_buckets.undecided, std::vector<std::string>{}) << print(of_buckets);
}

TEST(Unseen, are_statements_that_no_order_of_one_needs) {
  const Unseen u = unseen_of("score s * 0.125\nkeep j <= i\n", 300, true, "sm_90a");
  EXPECT_GT(u.kinds, 30);
  const auto named = [&](const char* kind) {
    return std::count(u.changes.begin(), u.changes.end(), fmt::format("no {}", kind));
  };
  for (const char* kind :
       {"wgmma", "wgmma_add", "map", "map_at", "row_sum", "tma_store", "store", "fill"})
    EXPECT_EQ(named(kind), 0) << kind << "\n" << print(u);
  EXPECT_EQ(named("order_wait"), 1) << print(u);
}

}  // namespace
}  // namespace kw::check
