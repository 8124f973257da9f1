// Wrong programs, each a small edit of a right one (tests/wrong/*/*.edit): every one is refuted, or
// faults, or breaks a law; and each right program is accepted by the very same checks.
#include <gtest/gtest.h>

#include <algorithm>

#include "check/check.h"
#include "edited_program.h"
#include "hand_captures.h"
#include "in_clone.h"
#include "tl/laws/laws.h"

namespace kw {
namespace {

check::Options quick() {
  check::Options o;
  o.cases = 14;
  o.laws = false;  // what running finds; the laws are asked apart
  o.self_check_step = 0;
  o.further_scores = 0;  // turning_points.cpp
  o.shrink = false;
  o.exact = false;      // exact.cpp
  o.schedules = false;  // tests/unit/schedules/schedules.cpp
  return o;
}

std::vector<std::string> wrong_programs() {
  std::vector<std::string> names;
  for (const auto& [name, file] : test::wrong_files()) names.push_back(name);
  return names;
}

// "refuted o": the output differs; "fault exec.origin": the fault's code begins so.
bool as_expected(const std::string& expect, const check::Report& report) {
  if (report.verdict != check::Verdict::refuted) return false;
  const std::string& what = report.counterexample->output;
  const bool fault = what.rfind("exec.", 0) == 0;
  const size_t space = expect.find(' ');
  const std::string detail = space == std::string::npos ? "" : expect.substr(space + 1);
  if (expect.rfind("fault", 0) == 0) return fault && what.rfind(detail, 0) == 0;
  return !fault && (detail.empty() || what == detail);
}

// Shrinks, when there is a statement to name.
check::Report check_edit(const tl::Program& program, const test::Edit& edit) {
  check::Options options = quick();
  options.shrink = edit.head.count("first") != 0;
  return check::check(program, test::capture_of(test::form_of(edit.base)), options);
}

class Right : public testing::TestWithParam<std::string> {};
TEST_P(Right, is_accepted) {
  const auto program = test::parsed(GetParam(), test::text_of(GetParam()));
  ASSERT_TRUE(program);
  const check::Report report =
      check::check(*program, test::capture_of(test::form_of(GetParam())), quick());
  EXPECT_EQ(report.verdict, check::Verdict::holds) << check::print(report);
  Diagnostics d;
  EXPECT_TRUE(tl::verify(*program, d)) << render(d);
}
INSTANTIATE_TEST_SUITE_P(
    Program, Right,
    testing::Values("full", "causal", "full_decode", "prefix_lm_decode",
                    "prefix_lm_decode_of_stored_parts", "full_bwd", "causal_bwd", "weights_bwd",
                    "divided_bwd", "log_sums_bwd", "softcap_bwd", "learned_bwd", "table_bwd",
                    "pairs_bwd", "epilogue_bwd", "turns_bwd", "full_wide_turns_bwd", "causal_bn80",
                    "prefix_lm", "alibi", "documents", "columns", "lists", "pair_bias", "pairs",
                    "table", "alone", "cluster_of_four", "cluster_of_one", "each_fetches", "f16",
                    "narrow_output", "ping_pong", "saves", "q_in_shared_memory", "queue", "rows",
                    "swapped", "three_warpgroups"),
    [](const auto& info) { return info.param; });

TEST(Schedules, refute_what_the_one_order_of_a_run_does_not_show) {
  std::string text = test::text_of("full");
  const std::string fence_async = "            fence_async\n";
  text.replace(text.find(fence_async), fence_async.size(),
               "            thread 0:\n                fence_async\n");
  const auto program = test::parsed("published_by_one_thread", text);
  ASSERT_TRUE(program);
  check::Options options = quick();
  options.cases = 3;
  const spec::Capture capture = test::capture_of(test::form_of("full"));
  EXPECT_EQ(check::check(*program, capture, options).verdict, check::Verdict::holds);
  options.schedules = true;
  const check::Report report = check::check(*program, capture, options);
  EXPECT_EQ(report.verdict, check::Verdict::refuted);
  ASSERT_TRUE(report.counterexample);
  EXPECT_EQ(report.counterexample->output, "schedule.fence");
  EXPECT_NE(check::print(report).find("fence_async"), std::string::npos);
}

class Wrong : public testing::TestWithParam<std::string> {};
TEST_P(Wrong, is_refused) {
  const test::Edit edit = test::read_edit(test::wrong_files().at(GetParam()));
  const std::string text = test::apply(edit);
  ASSERT_NE(text, test::text_of(edit.base));
  const auto program = test::parsed(GetParam(), text);
  ASSERT_TRUE(program);
  if (edit.head.at("expect") != "law only") {
    const check::Report report = check_edit(*program, edit);
    EXPECT_TRUE(as_expected(edit.head.at("expect"), report)) << check::print(report);
    const std::string first = edit.head.count("first") ? edit.head.at("first") : "";
    if (report.counterexample) {
      EXPECT_EQ(report.counterexample->statement.rfind(first, 0), 0u) << check::print(report);
    }
  }
  if (!edit.head.count("law")) return;
  Diagnostics d;
  tl::verify(*program, d);
  EXPECT_TRUE(std::any_of(
      d.all().begin(), d.all().end(),
      [&](const Diagnostic& broken) { return broken.code.rfind(edit.head.at("law"), 0) == 0; }))
      << edit.head.at("law") << " is not broken:\n"
      << render(d);
}
INSTANTIATE_TEST_SUITE_P(Program, Wrong, testing::ValuesIn(wrong_programs()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace kw
