// Verdicts other than those of wrong programs; what a report says; how cases are made.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "check/planted.h"
#include "check/trial.h"
#include "edited_program.h"
#include "hand_captures.h"
#include "operator/evaluate/evaluate.h"
#include "operator/family.h"
#include "with_heads.h"

namespace kw {
namespace {

using check::Verdict;

check::Options quick() {
  check::Options o;
  o.cases = 3;
  o.exact_cases = 1;
  o.self_check_step = 0;
  o.further_scores = 0;  // turning_points.cpp
  return o;
}

check::Report check_text(const std::string& text, const spec::Capture& capture) {
  const auto program = test::parsed("program", text);
  return program ? check::check(*program, capture, quick()) : check::Report();
}

TEST(Check, takes_inputs_in_the_users_own_order_of_dimensions) {
  using test::at;
  spec::Form form = test::form_of("causal");
  for (spec::Argument& a : form.arguments) std::swap(a.dims[1], a.dims[2]);  // [B, S, H, D]
  spec::Term& t = form.terms[0];
  const spec::ExprPtr group = spec::binary("//", at("h"), spec::integer(2));
  t.q.indices = {at("b"), at("i"), at("h"), at("d")};
  t.k.indices = t.v.indices = {at("b"), at("j"), group, at("d")};
  const check::Report r = check_text(test::text_of("causal"), test::capture_of(form));
  EXPECT_EQ(r.verdict, Verdict::holds) << check::print(r);
  EXPECT_EQ(r.cases, 3 + 6);  // with those of planted values
  EXPECT_GT(r.rows, 0);
}

TEST(Check, refutes_a_right_program_of_another_spec_and_shows_the_smallest_case) {
  const check::Report r =
      check_text(test::text_of("full"), test::capture_of(test::form_of("causal")));
  ASSERT_EQ(r.verdict, Verdict::refuted);
  EXPECT_EQ(r.counterexample->sizes.at("B"), 1);
  EXPECT_EQ(r.counterexample->sizes.at("M"), 1);
  EXPECT_EQ(r.counterexample->sizes.at("N"), 2);
  EXPECT_EQ(r.counterexample->line, 90);
  const std::string text = check::print(r);
  EXPECT_NE(text.find("first statement that differs (line 90, program.tl:90:21)"),
            std::string::npos)
      << text;
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 24);
  const nlohmann::json json = check::to_json(r);
  EXPECT_EQ(json["verdict"], "refuted");
  EXPECT_EQ(json["counterexample"]["line"], 90);
}

TEST(Check, does_not_run_a_program_that_breaks_a_law) {
  std::string text = test::text_of("full");
  const std::string from = "to_operand p = s";
  text.replace(text.find(from), from.size(), "to_operand q_r = s, p");
  Diagnostics d;
  EXPECT_FALSE(tl::parse(make_source("x.tl", text), d));
  text = test::text_of("full");
  const std::string registers = "WARPGROUP_REGISTERS = 240";
  text.replace(text.find(registers), registers.size(), "WARPGROUP_REGISTERS = 256");
  const check::Report r = check_text(text, test::capture_of(test::form_of("full")));
  EXPECT_EQ(r.verdict, Verdict::invalid);
  EXPECT_EQ(r.diagnostics.all()[0].code.substr(0, 12), "warpgroups.C");
}

TEST(Check, calls_a_program_invalid_whose_argument_the_function_lacks) {
  const check::Report r =
      check_text(test::text_of("prefix_lm"), test::capture_of(test::form_of("causal")));
  EXPECT_EQ(r.verdict, Verdict::invalid);
  ASSERT_FALSE(r.diagnostics.all().empty());
  EXPECT_EQ(r.diagnostics.all()[0].code, "check.binding");
}

TEST(Check, calls_a_program_invalid_that_gives_a_log_sum_of_two_terms) {
  spec::Form form = test::form_of("full");
  form.terms.push_back(form.terms[0]);
  EXPECT_EQ(check_text(test::text_of("full"), test::capture_of(form)).verdict, Verdict::invalid);
}

TEST(Check, decides_nothing_about_terms_of_different_keys_or_without_cases) {
  spec::Form form = test::form_of("full");
  form.terms.push_back(test::form_of("causal").terms[0]);
  const check::Report two = check_text(test::text_of("full"), test::capture_of(form));
  EXPECT_EQ(two.verdict, Verdict::inconclusive);
  ASSERT_FALSE(two.diagnostics.all().empty());
  EXPECT_EQ(two.diagnostics.all()[0].code, "check.terms");
  spec::Capture none = test::capture_of(test::form_of("full"));
  none.cases.clear();
  EXPECT_EQ(check_text(test::text_of("full"), none).verdict, Verdict::inconclusive);
}

TEST(Check, decides_nothing_when_the_evaluator_disagrees_with_the_goldens) {
  spec::Capture capture = test::capture_of(test::form_of("full"));
  for (spec::GoldenCase& g : capture.cases) {
    Diagnostics d;
    const auto problem = spec::problem_of(capture.form, g, d);
    g.heads = {0};
    g.truth = Tensor(Dtype::f64, {g.sizes["B"], 1, g.sizes["M"], 128});
    spec::Evaluator evaluator(capture.form, *problem);
    for (int64_t r = 0; r < g.sizes["B"] * g.sizes["M"]; ++r)
      evaluator.row(r / g.sizes["M"], 0, r % g.sizes["M"], &g.truth.values[r * 128]);
  }
  const auto program = test::parsed("full", test::text_of("full"));
  check::Options options = quick();
  options.self_check_step = 1;
  EXPECT_EQ(check::check(*program, capture, options).verdict, Verdict::holds);
  capture.cases[1].truth.values[5] += 1e-3;
  const check::Report r = check::check(*program, capture, options);
  EXPECT_EQ(r.verdict, Verdict::inconclusive);
  EXPECT_EQ(r.diagnostics.all()[0].code, "internal.form");
}

// The key with the NaN is not the last, and the sink is smaller: neither takes its place.
TEST(Check, a_row_of_which_the_function_is_nan_has_no_log_sum) {
  spec::Form form = test::form_of("full");
  spec::Term& term = form.terms[0];
  const spec::ExprPtr j = spec::leaf(spec::Kind::index, spec::Type::integer, "j");
  const spec::ExprPtr place = spec::binary("-", spec::unary("float", j), spec::real(0.5));
  term.score = spec::binary("+", term.score, spec::unary("log", place));  // of -0.5 at key 0
  const spec::Capture capture = test::capture_of(form);
  Diagnostics d;
  const auto problem = spec::problem_of(capture.form, capture.cases[0], d);
  ASSERT_TRUE(problem);
  EXPECT_TRUE(std::isnan(spec::evaluate(capture.form, *problem).lse.values[0]));
}

// Of scores of 10^6 binades fp32 has no digits left.
TEST(Check, rows_of_scores_beyond_a_million_binades_are_held_to_nothing) {
  for (const double times : {1.0, 1e8}) {
    spec::Form form = test::form_of("full");
    form.terms[0].score = spec::binary("*", form.terms[0].score, spec::real(times));
    const spec::Capture capture = test::capture_of(form);
    Diagnostics d;
    const auto problem = spec::problem_of(capture.form, capture.cases[0], d);
    ASSERT_TRUE(problem);
    const auto truth = spec::Family::of(capture.form).truth(capture.form, *problem);
    truth->begin_head();
    truth->row(0, 0, 0);
    EXPECT_EQ(truth->of(0).unspecified, times > 1);
    EXPECT_EQ(truth->of(1).unspecified, times > 1);
  }
}

// Inputs of 32 heads of which two groups run are those of two groups.
TEST(Cases, of_many_rows_have_inputs_of_the_heads_that_run) {
  const spec::Capture capture = test::capture_of(
      test::with_heads(transfer::form_of("argument slopes f32[H]\nscore s - slopes[h] * i\n"), 32));
  const spec::Form& form = capture.form;
  check::Case c = check::case_of(capture, 1, 20000, 30000, 1);
  c.heads = {4, 7, 28, 31};
  c.key_heads = 2;
  const check::FewHeads few = check::few_heads(form, c);
  EXPECT_EQ(few.form.H.constant, 8);
  EXPECT_EQ(few.form.G.constant, 2);
  EXPECT_EQ(few.c.heads, (std::vector<int64_t>{0, 3, 4, 7}));
  const auto heads_of = [](const spec::Form& f, const char* name, size_t d) {
    return f.argument(name)->dims[d].constant;
  };
  EXPECT_EQ(heads_of(few.form, "q", 1), 8);
  EXPECT_EQ(heads_of(few.form, "k", 1), 2);
  EXPECT_EQ(heads_of(few.form, "v", 1), 2);
  EXPECT_EQ(heads_of(few.form, "slopes", 0), 8);
  EXPECT_LT(check::elements_of(few), 20000 * 32 * 128);
  Diagnostics d;
  const auto problem = check::problem_of(few.form, few.c, d);
  ASSERT_TRUE(problem) << render(d);
  EXPECT_EQ(problem->tensors.at("q").shape[1], 8);
  // A few rows are no work, and a head that is computed with is itself.
  c = check::case_of(capture, 1, 200, 300, 1);
  c.heads = {4, 7};
  c.key_heads = 1;
  EXPECT_EQ(check::few_heads(form, c).form.H.constant, 32);
  const spec::Form one = test::with_heads(
      transfer::form_of("argument slopes f32[H]\nscore s - slopes[h] * slopes[5]\n"), 32);
  EXPECT_TRUE(spec::heads_are_alike(one));
  const auto of_one = spec::with_key_heads(one, 1);
  ASSERT_TRUE(of_one);
  EXPECT_EQ(heads_of(*of_one, "slopes", 0), 32) << "the sixth is read of each";
  EXPECT_FALSE(
      spec::with_key_heads(test::with_heads(transfer::form_of("score s - h * i\n"), 32), 1));
}

TEST(Cases, run_all_heads_where_a_head_is_more_than_a_place) {
  spec::Form form = test::form_of("alibi");
  EXPECT_TRUE(spec::heads_are_alike(form));  // slopes[h]
  const spec::Form alibi = form;
  for (spec::Argument& a : form.arguments)
    if (a.name == "slopes") a.dims[0] = {"L1", 0};  // of as many as its reader says
  EXPECT_FALSE(spec::heads_are_alike(form));
  form = alibi;
  form.terms[0].score = spec::binary("*", form.terms[0].score, spec::unary("float", test::at("h")));
  EXPECT_FALSE(spec::heads_are_alike(form));
  form.H = {"", 16};
  form.G = {"", 4};
  spec::Capture capture = test::capture_of(form);
  for (const check::Case& c : check::make_cases(capture, {})) EXPECT_EQ(c.heads.size(), 16u);
}

TEST(Cases, otherwise_run_two_groups_and_keep_their_ratio_and_one_case_runs_all) {
  spec::Form form = test::form_of("full");
  form.H = {"", 16};
  form.G = {"", 4};
  spec::Capture capture = test::capture_of(form);
  for (spec::GoldenCase& g : capture.cases) g.heads = {5, 14};
  int all = 0;
  const std::vector<check::Case> cases = check::make_cases(capture, {});
  EXPECT_EQ(cases.size(), 64u);
  for (const check::Case& c : cases) {
    if (c.heads.size() == 16)
      ++all;
    else
      EXPECT_EQ(c.heads, (std::vector<int64_t>{4, 5, 6, 7, 12, 13, 14, 15}));
  }
  EXPECT_EQ(all, 1);
}

}  // namespace
}  // namespace kw
