// What no case of a few hundred rows and keys shows: numbers beyond them, many heads, equal reals.
#include "check/turning_points.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "check/equalities.h"
#include "check/program_numbers.h"
#include "edited_program.h"
#include "hand_captures.h"
#include "transfer_form.h"

namespace kw {
namespace {

using check::Verdict;

check::Options few() {
  check::Options o;
  o.cases = 3;
  o.exact = o.schedules = o.shrink = o.proofs = false;
  o.self_check_step = 0;
  return o;
}

spec::Form with_window(int64_t window) {
  spec::Form form = test::form_of("causal");
  form.terms[0].keep = spec::binary(
      "and", form.terms[0].keep,
      spec::binary("<", spec::binary("-", test::at("i"), spec::integer(window)), test::at("j")));
  return form;
}

// The text with another in its place, which stands there once.
tl::Program edited(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << text;
  return *test::parsed("edited", text.replace(at, from.size(), to));
}

TEST(TurningPoints, are_the_numbers_of_specification_and_program_that_cases_do_not_reach) {
  const tl::Program causal = *test::parsed("causal", test::text_of("causal"));
  EXPECT_EQ(check::turning_points(causal, test::form_of("causal"), false), std::vector<int64_t>{});
  EXPECT_EQ(check::turning_points(causal, with_window(1024), false), std::vector<int64_t>{1024});
  EXPECT_EQ(check::turning_points(causal, with_window(100), false), std::vector<int64_t>{});
  EXPECT_EQ(check::turning_points(causal, with_window(1024), true), std::vector<int64_t>{});
  const tl::Program odd = edited(test::text_of("causal"), "let g = c.h // (H // G)",
                                 "let g = where(c.m == 37, 0, c.h // (H // G))");
  const std::vector<int64_t> points = check::turning_points(odd, test::form_of("causal"), false);
  EXPECT_TRUE(std::count(points.begin(), points.end(), 37 * 128)) << "a block's number";
}

TEST(TurningPoints, have_cases_on_both_sides_in_rows_and_in_keys) {
  const spec::Capture capture = test::capture_of(with_window(1024));
  const tl::Program causal = *test::parsed("causal", test::text_of("causal"));
  std::vector<int64_t> unreached;
  std::set<int64_t> rows, keys;
  bool both = false;
  for (const check::Case& c : check::cases_beyond(causal, capture, few(), false, unreached)) {
    rows.insert(c.sizes.at("M"));
    keys.insert(c.sizes.at("N"));
    both |= c.sizes.at("M") > 1024 && c.sizes.at("N") > 1024;
  }
  for (int64_t size : {1023, 1024, 1025}) EXPECT_TRUE(rows.count(size) && keys.count(size)) << size;
  EXPECT_TRUE(both);
  EXPECT_EQ(unreached, std::vector<int64_t>{});
}

TEST(TurningPoints, of_batch_entries_have_as_many_unless_all_is_proved) {
  const spec::Capture capture = test::capture_of(test::form_of("full_bwd"));
  const tl::Program odd = edited(test::text_of("full_bwd"), "map dp[i, j] = dp[i, j] * s[i, j]",
                                 "map dp[i, j] = dp[i, j] * s[i, j] * f32(c.b // 100 * 0 + 1)");
  const auto most = [&](bool proved) {
    std::vector<int64_t> unreached;
    int64_t entries = 0;
    for (const check::Case& c : check::cases_beyond(odd, capture, few(), proved, unreached))
      entries = std::max(entries, c.sizes.at("B"));
    return entries;
  };
  EXPECT_GE(most(false), 102);
  EXPECT_EQ(most(true), 67);
}

TEST(TurningPoints, of_a_products_steps_have_cases_as_deep) {
  const spec::Form form = transfer::form_of("product\nvalue s * 0.5\n");
  const tl::Program kernel = transfer::start_of(form, "sm_90a").kernel;
  spec::Capture capture;
  capture.form = form;
  capture.cases.emplace_back();
  capture.cases[0].sizes = {{"B", 1}, {"M", 100}, {"N", 100}, {"K", 100}};
  capture.cases[0].heads = {0};
  const std::string right = tl::print(kernel), steps = "ceil_div(K, BK)";
  for (const int64_t most : {6, 40}) {
    const tl::Program few_steps = edited(right, steps, fmt::format("min({}, {})", steps, most));
    std::vector<int64_t> unreached;
    int64_t deepest = 0;
    for (const check::Case& c : check::cases_beyond(few_steps, capture, few(), false, unreached))
      deepest = std::max(deepest, c.sizes.at(form.D.name));
    EXPECT_GT(deepest, most * 64);
  }
}

TEST(TurningPoints, divide_in_turn_and_count_blocks_of_a_product) {
  const spec::Form form = transfer::form_of("product\nvalue s * 0.5\n");
  const tl::Program kernel = transfer::start_of(form, "sm_90a").kernel;
  spec::Capture capture;
  capture.form = form;
  capture.cases.emplace_back();
  capture.cases[0].sizes = {{"B", 1}, {"M", 100}, {"N", 100}, {"K", 100}};
  capture.cases[0].heads = {0};
  const auto has = [&](const tl::Program& program,
                       const std::function<bool(const check::Case&)>& what) {
    std::vector<int64_t> unreached;
    const auto cases = check::cases_beyond(program, capture, few(), false, unreached);
    return std::any_of(cases.begin(), cases.end(), what);
  };
  const std::string text = tl::print(kernel), steps = "ceil_div(K, BK)";
  const auto deep = [&](const check::Case& c) { return c.sizes.at(form.D.name) > 64 * 64 * 4; };
  EXPECT_FALSE(has(kernel, deep));
  EXPECT_TRUE(has(edited(text, steps, steps + " - K // BK // BK // 4"), deep));
  // GROUP = 16 row blocks of 128 are worked on together.
  EXPECT_TRUE(has(kernel, [&](const check::Case& c) {
    return c.sizes.at("M") > 16 * 128 && c.sizes.at("N") > 256;
  }));
  const auto both = [&](const check::Case& c) {
    return c.sizes.at("B") > 7 && c.sizes.at("M") > 7 * 128;
  };
  EXPECT_FALSE(has(kernel, both));
  EXPECT_TRUE(has(edited(text, steps, steps + " - c.b // 7 * 0"), both));
}

// Where rows are keys, too, entries and blocks together are more work than blocks alone.
TEST(TurningPoints, that_count_blocks_are_reached_before_entries_and_blocks_together) {
  const spec::Form form = transfer::form_of(
      "argument document i32[B, N]\nscore s * 0.08838834764831845\n"
      "keep document[b, i] == document[b, j] and j <= i\nqueries N\ngradients\n");
  const tl::Program few_blocks = edited(test::text_of("causal_bwd"), "ceil_div(M, BM) - first)",
                                        "min(min(min(3, 4), 12), ceil_div(M, BM)) - first)");
  std::vector<int64_t> unreached;
  int64_t most = 0;
  for (const check::Case& c :
       check::cases_beyond(few_blocks, test::capture_of(form), check::Options{}, false, unreached))
    if (c.sizes.at("B") == 1) most = std::max(most, c.sizes.at("N"));
  EXPECT_GT(most, 13 * 64) << "a block beyond the twelfth";
  EXPECT_FALSE(std::count(unreached.begin(), unreached.end(), 12 * 64));
}

TEST(TurningPoints, that_are_too_far_are_named_and_limit_the_verdict) {
  const spec::Capture capture = test::capture_of(with_window(20000));
  const tl::Program causal = *test::parsed("causal", test::text_of("causal"));
  std::vector<int64_t> unreached;
  check::cases_beyond(causal, capture, few(), false, unreached);
  EXPECT_EQ(unreached, std::vector<int64_t>{20000});
  check::Report report;
  report.verdict = Verdict::holds;
  report.unreached = unreached;
  report.schedules.emplace();
  report.schedules->closed = report.schedules->bounded = true;
  report.exact.ran = true;
  report.indices.emplace();
  report.indices->obligations.push_back({"a mask", proofs::Answer::proved, "", {}, "", {}, 0});
  EXPECT_EQ(check::headline(report),
            "holds for the sizes and data that ran (no case has more rows and keys than 20000)");
  EXPECT_NE(check::print(report).find("no case has more rows and keys than 20000"),
            std::string::npos);
  report.integers = {"prefix 0 to 20"};
  EXPECT_NE(
      check::print(report).find("integers of the data, in the cases that ran: prefix 0 to 20\n"),
      std::string::npos);
  report.unreached.clear();
  EXPECT_EQ(check::headline(report), "holds");
  EXPECT_EQ(check::print(report).find("integers of the data"), std::string::npos);
  report.exact.ran = false;
  EXPECT_EQ(check::headline(report),
            "holds for the sizes and data that ran (the exact reading did not run)");
  report.indices->obligations.push_back({"a list", proofs::Answer::unknown, "", {}, "", {}, 0});
  EXPECT_EQ(check::headline(report), "holds for the sizes and data that ran (open: a list)");
}

TEST(Check, says_what_the_integers_of_its_data_were_where_it_ran) {
  spec::Capture capture = test::capture_of(test::form_of("prefix_lm"));
  capture.cases.resize(1);
  capture.cases[0].draws.arguments.at("prefix").high = 100'000;
  check::Options o = few();
  o.cases = 1;
  const tl::Program program = *test::parsed("prefix_lm", test::text_of("prefix_lm"));
  const check::Report r = check::check(program, capture, o);
  ASSERT_EQ(r.integers.size(), 1u);
  EXPECT_EQ(r.integers[0].rfind("prefix ", 0), 0u) << r.integers[0];
  EXPECT_EQ(r.integers[0].find(" to 100000"), std::string::npos) << "nobody drew the greatest";
}

TEST(Check, refutes_a_program_without_the_window_of_1024_that_the_function_has) {
  const tl::Program causal = *test::parsed("causal", test::text_of("causal"));
  const check::Report r = check::check(causal, test::capture_of(with_window(1024)), few());
  EXPECT_EQ(r.verdict, Verdict::refuted) << check::print(r);
}

TEST(Check, that_must_prove_is_inconclusive_where_something_stays_open) {
  check::Options o = few();
  o.schedules = o.proofs = o.exact = o.require_proof = true;
  o.exact_cases = 1;
  o.further_scores = 1'000'000;
  const spec::Capture capture = test::capture_of(test::form_of("causal"));
  const tl::Program causal = *test::parsed("causal", test::text_of("causal"));
  EXPECT_EQ(check::check(causal, capture, o).verdict, Verdict::holds);
  const tl::Program odd = edited(test::text_of("causal"), "let g = c.h // (H // G)",
                                 "let g = where(c.b == 3000, 0, c.h // (H // G))");
  const check::Report r = check::check(odd, capture, o);
  EXPECT_EQ(r.verdict, Verdict::inconclusive) << check::print(r);
  ASSERT_FALSE(r.diagnostics.all().empty());
  EXPECT_EQ(r.diagnostics.all()[0].code, "check.proof");
}

// Sixteen blocks of keys take turns in what a table's sums are added to.
TEST(Check, looks_at_more_blocks_than_the_rows_of_a_scratch_are_a_multiple_of) {
  const auto taking_turns = [](const std::string& row) {
    std::string text = test::text_of("table_bwd");
    for (const auto& [from, to] :
         {std::pair<std::string, std::string>{"    scale: f32",
                                              "    R: size = B * 16\n    scale: f32"},
          {"sum_table: scratch f32[B, H, S]", "sum_table: scratch f32[R, H, S]"},
          {"-> sum_table[c.b, h,", "-> sum_table[" + row + ", h,"}}) {
      const size_t at = text.find(from);
      EXPECT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    }
    return *test::parsed("taking_turns", text);
  };
  const spec::Capture capture = test::capture_of(test::form_of("table_bwd"));
  const auto right = check::check(taking_turns("c.b * 16 + c.n % 16"), capture, few());
  EXPECT_EQ(right.verdict, Verdict::holds) << check::print(right);
  const auto wrong = check::check(taking_turns("c.b * 16 + c.n"), capture, few());
  EXPECT_EQ(wrong.verdict, Verdict::refuted) << check::print(wrong);
  ASSERT_TRUE(wrong.counterexample);
  EXPECT_EQ(wrong.counterexample->output, "exec.bounds");
}

TEST(Check, looks_at_all_heads_at_more_rows_than_a_tile) {
  const tl::Program odd = edited(test::text_of("causal"), "let g = c.h // (H // G)",
                                 "let g = where(H > 3 and M > 256, 0, c.h // (H // G))");
  const check::Report r = check::check(odd, test::capture_of(test::form_of("causal")), few());
  EXPECT_EQ(r.verdict, Verdict::refuted) << check::print(r);
}

TEST(ProgramNumbers, that_something_is_compared_with_are_computed_of_parameters_too) {
  const auto bounds = [](const std::string& of_blocks) {
    return check::numbers_of(
               edited(test::text_of("full"), "return ceil_div(N, BN), N // BN",
                      fmt::format("let cap = BN + BN\n    return {}, N // BN", of_blocks)))
        .bounds;
  };
  const std::set<int64_t> none = bounds("ceil_div(N, BN)");
  for (const auto& [of_blocks, number] : std::vector<std::pair<std::string, int64_t>>{
           {"min(ceil_div(N, BN), D)", 128},
           {"min(ceil_div(N, BN), cap)", 256},
           {"min(ceil_div(N, BN), D * 2)", 256},
           {"where(c.m - 96 >= 0, 1, ceil_div(N, BN))", 96},
           {"max(1, ceil_div(N, BN) - (ceil_div(N, BN) // (D * 5)))", 640}}) {
    EXPECT_FALSE(none.count(number)) << number;
    EXPECT_TRUE(bounds(of_blocks).count(number)) << of_blocks;
  }
}

TEST(Check, looks_at_more_blocks_than_a_parameter_says) {
  const tl::Program odd = edited(test::text_of("full_bwd"), "return 0, ceil_div(M, BM)",
                                 "return 0, min(ceil_div(M, BM), D)");
  const check::Report r = check::check(odd, test::capture_of(test::form_of("full_bwd")), few());
  EXPECT_EQ(r.verdict, Verdict::refuted) << check::print(r);
}

TEST(Check, looks_at_the_data_of_as_many_batch_entries_as_a_parameter_says) {
  const tl::Program odd = edited(test::text_of("prefix_lm"), "let kept = prefix[c.b]\n    return",
                                 "let kept = prefix[min(c.b, D)]\n    return");
  const check::Report r = check::check(odd, test::capture_of(test::form_of("prefix_lm")), few());
  EXPECT_EQ(r.verdict, Verdict::refuted) << check::print(r);
}

TEST(Check, looks_at_many_batch_entries) {
  const tl::Program odd = edited(test::text_of("causal"), "tma_load_multicast v[c.b,",
                                 "tma_load_multicast v[where(c.b >= 40, 0, c.b),");
  const check::Report r = check::check(odd, test::capture_of(test::form_of("causal")), few());
  EXPECT_EQ(r.verdict, Verdict::refuted) << check::print(r);
}

TEST(Equalities, of_reals_that_the_specification_has_not_decide_nothing) {
  const std::string step = "raised = online_max m, factor, s, slack, scale";
  const tl::Program odd =
      edited(test::text_of("causal"), step,
             "raised = online_max m, factor, s, slack, scale\n" + std::string(16, ' ') +
                 "    map s[i, j] = where(s[i, j] == 0.0, -inf, s[i, j])");
  const check::Report r = check::check(odd, test::capture_of(test::form_of("causal")), few());
  EXPECT_EQ(r.verdict, Verdict::inconclusive);
  ASSERT_FALSE(r.diagnostics.all().empty());
  EXPECT_EQ(r.diagnostics.all()[0].code, "check.equality");
  EXPECT_NE(r.diagnostics.all()[0].message.find("`s[i, j] == 0.0`"), std::string::npos);
}

TEST(Equalities, are_between_comparisons_that_the_specification_has_not) {
  const spec::Form form = test::form_of("causal");
  EXPECT_EQ(check::unasked_comparison(*test::parsed("causal", test::text_of("causal")), form), "");
  const std::string step = "raised = online_max m, factor, s, slack, scale";
  const auto with = [&](const std::string& value) {
    return edited(test::text_of("causal"), step,
                  step + "\n" + std::string(20, ' ') + "map s[i, j] = " + value);
  };
  EXPECT_EQ(check::unasked_comparison(with("where(s[i, j] < 7.0, s[i, j], 9.0)"), form),
            "s[i, j] < 7.0");
  EXPECT_EQ(check::unasked_comparison(with("where(s[i, j] < 0.0, 0.0, s[i, j])"), form), "");
}

TEST(Equalities, that_mean_a_row_without_a_key_are_known) {
  Diagnostics d;
  for (const char* name : {"causal", "full", "prefix_lm"})
    EXPECT_TRUE(check::equalities_are_seen(*test::parsed(name, test::text_of(name)),
                                           test::form_of(name), d))
        << render(d);
}

}  // namespace
}  // namespace kw
