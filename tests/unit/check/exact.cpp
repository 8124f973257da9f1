// The exact reading by itself: right programs give the very elements that their forms give, wrong
// ones do not, and where opaque operations leave room for doubt the verdict says so.
#include "num/exact.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "check/trial.h"
#include "edited_program.h"
#include "hand_captures.h"
#include "in_clone.h"

namespace kw {
namespace {

using check::Case;
using check::Trial;
using check::Verdict;

Case case_of(const spec::Capture& capture, int64_t b, int64_t m, int64_t n) {
  Case c;
  c.golden = &capture.cases[n % 2];
  c.sizes = {{"B", b}, {"M", m}, {"N", n}};
  c.draws = c.golden->draws;
  c.exact = false;
  check::choose_heads(capture.form, c, false);
  return c;
}

check::Options exact_only() {
  check::Options o;
  o.values = false;
  o.exact_cases = 1;
  o.self_check_step = 0;
  o.shrink = false;
  return o;
}

spec::Capture one_head(const spec::ExprPtr& score = nullptr) {
  spec::Form form = test::form_of("full");
  form.H = form.arguments[0].dims[1] = {"", 1};
  form.G = form.arguments[1].dims[1] = form.arguments[2].dims[1] = {"", 1};
  form.terms[0].k.indices[1] = form.terms[0].v.indices[1] =
      spec::binary("//", test::at("h"), spec::integer(1));
  if (score) form.terms[0].score = score;
  spec::Capture capture = test::capture_of(form);
  for (spec::GoldenCase& g : capture.cases) g.heads = {0};
  return capture;
}

// ---- the programs of the values reading's tests
class ExactRight : public testing::TestWithParam<std::string> {};
TEST_P(ExactRight, agrees_to_the_last_bit) {
  const bool sm80 = GetParam() == "sm80";  // the corpus's other kernel: synchronous products
  const std::string sm80_text = in_clone("/tests/corpus/sm80_attention_fwd.tl");
  const auto program =
      test::parsed(GetParam(), sm80 ? read_source(sm80_text)->text : test::text_of(GetParam()));
  ASSERT_TRUE(program);
  const spec::Capture capture = test::capture_of(test::form_of(sm80 ? "full" : GetParam()));
  int draw = 0;
  for (const auto& [b, m, n] : {std::tuple(1, 65, 257), {2, 130, 70}, {1, 1, 1}}) {
    const Trial t = check::run_exact_trial(*program, capture, case_of(capture, b, m, n), draw++);
    ASSERT_TRUE(t.valid) << render(t.diagnostics);
    EXPECT_FALSE(t.failure) << t.failure->what.message;
    EXPECT_EQ(t.opaque, 0);
    EXPECT_LT(t.error_bound, 0x1p-34);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Program, ExactRight,
    testing::Values("full", "causal", "full_decode", "prefix_lm_decode",
                    "prefix_lm_decode_of_stored_parts", "full_bwd", "causal_bwd", "weights_bwd",
                    "log_sums_bwd", "softcap_bwd", "causal_bn80", "prefix_lm", "alibi", "documents",
                    "columns", "lists", "pair_bias", "pairs", "table", "alone", "cluster_of_four",
                    "cluster_of_one", "each_fetches", "f16", "narrow_output", "ping_pong", "saves",
                    "q_in_shared_memory", "queue", "rows", "sm80", "swapped", "three_warpgroups"),
    [](const auto& info) { return info.param; });

// Of the programs whose results differ those that the exact reading sees, or (`only: values`) those
// of which every result is right but for overflow, or for what is rounded away.
std::vector<std::string> numerically_wrong(bool by_overflow = false) {
  std::vector<std::string> names;
  for (const auto& [name, file] : test::wrong_files()) {
    const SourcePtr text = read_source(file);
    const bool values_only = text->text.find("\nonly: values\n") != std::string::npos;
    if (values_only == by_overflow && text->text.find("\nexpect: refuted") != std::string::npos)
      names.push_back(name);
  }
  return names;
}

class ExactWrong : public testing::TestWithParam<std::string> {};
TEST_P(ExactWrong, is_another_formula) {
  const test::Edit edit = test::read_edit(test::wrong_files().at(GetParam()));
  const auto program = test::parsed(GetParam(), test::apply(edit));
  ASSERT_TRUE(program);
  const spec::Capture capture = test::capture_of(test::form_of(edit.base));
  std::vector<Case> cases = {case_of(capture, 1, 65, 130)};                  // enough for most
  if (edit.base == "lists") cases.push_back(case_of(capture, 2, 320, 320));  // kinds that differ
  for (Case& c : check::make_exact_cases(capture, {})) cases.push_back(std::move(c));
  for (const Case& c : cases) {
    const Trial t = check::run_exact_trial(*program, capture, c, 0);
    ASSERT_TRUE(t.valid) << render(t.diagnostics);
    if (!t.failure) continue;
    EXPECT_EQ(t.failure->opaque, 0);  // refuted, not doubtful
    return;
  }
  FAIL() << "no case tells it from a right program";
}
INSTANTIATE_TEST_SUITE_P(Program, ExactWrong, testing::ValuesIn(numerically_wrong()),
                         [](const auto& info) { return info.param; });

TEST(Exact, sees_every_wrong_program_that_the_values_refute_but_for_overflow_and_rounding) {
  EXPECT_EQ(numerically_wrong().size(), 189u);  // as docs/evidence.md says
  EXPECT_EQ(numerically_wrong(true).size(), 13u);
}

TEST(Exact, has_no_overflow_to_see) {
  for (const std::string& name : numerically_wrong(true)) {
    const test::Edit edit = test::read_edit(test::wrong_files().at(name));
    const auto program = test::parsed(name, test::apply(edit));
    ASSERT_TRUE(program);
    const spec::Capture capture = test::capture_of(test::form_of(edit.base));
    const Trial t = check::run_exact_trial(*program, capture, case_of(capture, 1, 200, 300), 0);
    ASSERT_TRUE(t.valid) << render(t.diagnostics);
    EXPECT_FALSE(t.failure) << name << ": " << t.failure->what.message;
  }
}

TEST(Exact, sees_one_element_of_one_key_block_among_4096_keys) {
  std::string text = test::text_of("full");
  const std::string mask = "if not late:\n                    raised = online_max m";
  text.replace(text.find(mask), mask.size(),
               "map_at s[i, j] from (i0, n * BN) = where(i == 5 and j == 2567, s[i, j] * 1.01, "
               "s[i, j])\n                " +
                   mask);
  const auto program = test::parsed("planted", text);
  ASSERT_TRUE(program);
  const spec::Capture capture = one_head();
  const Case c = case_of(capture, 1, 8, 4096);
  EXPECT_FALSE(check::run_trial(*program, capture, c).failure);
  const Trial t = check::run_exact_trial(*program, capture, c, 0);
  ASSERT_TRUE(t.failure);
  EXPECT_EQ(t.failure->what.i, 5);
  EXPECT_EQ(t.failure->opaque, 0);
}

TEST(Exact, runs_both_arms_of_a_branch_on_raised) {
  const spec::Capture capture = one_head();
  const std::string rescale = "to_operand p = s\n                if raised:";
  for (const char* arm : {"if raised:", "if not raised:"}) {
    std::string text = test::text_of("full");
    text.replace(text.find(rescale), rescale.size(),
                 std::string("to_operand p = s\n                ") + arm +
                     "\n                    map acc[i, j] = acc[i, j] + 1.0\n" +
                     "                if raised:");
    const auto program = test::parsed("arm", text);
    ASSERT_TRUE(program);
    bool refuted = false;
    for (int draw = 0; draw < 3 && !refuted; ++draw)
      refuted = bool(
          check::run_exact_trial(*program, capture, case_of(capture, 1, 65, 520), draw).failure);
    EXPECT_TRUE(refuted) << arm;
  }
}

// ---- score maps
spec::ExprPtr score_of(const std::function<spec::ExprPtr(spec::ExprPtr)>& f) {
  return f(test::form_of("full").terms[0].score);
}

// A plain program with these lines before its mask, for a form with this score.
check::Report check_score(const std::string& lines, const spec::ExprPtr& score,
                          const check::Options& options = exact_only(),
                          const std::string& scale = "log2e") {
  std::string text = test::text_of("cluster_of_one");
  const std::string mask = "if partial:", old = "rsqrt(D) * log2e";
  const size_t at = text.find(mask);
  std::string indented;
  for (const std::string& line : test::lines_of(lines))
    indented += line + "\n" + std::string(16, ' ');
  text.replace(at, mask.size(), indented + mask);
  text.replace(text.find(old), old.size(), scale);
  const auto program = test::parsed("score", text);
  return program ? check::check(*program, one_head(score), options) : check::Report();
}

TEST(ExactScores, take_softcap_by_tanh_as_exact) {
  const auto score = score_of([](spec::ExprPtr s) {
    return spec::binary("*", spec::unary("tanh", spec::binary("/", s, spec::real(50))),
                        spec::real(50));
  });
  const std::string right = "map s[i, j] = tanh(s[i, j] * 0.0017677669)";
  const check::Report r = check_score(right, score, exact_only(), "50.0 * log2e");
  EXPECT_EQ(r.verdict, Verdict::holds) << check::print(r);
  EXPECT_EQ(r.exact.opaque, "");
  const std::string wrong = "map s[i, j] = tanh(s[i, j] * 0.0018)";
  EXPECT_EQ(check_score(wrong, score, exact_only(), "50.0 * log2e").verdict, Verdict::refuted);
  EXPECT_EQ(check_score(right, score, exact_only(), "51.0 * log2e").verdict, Verdict::refuted);
}

TEST(ExactScores, take_a_power_of_two_for_one_where_the_power_is_two) {
  const auto score = score_of([](spec::ExprPtr s) {
    const auto distance = spec::binary("-", test::at("i"), test::at("j"));
    const auto steps = spec::binary("%", distance, spec::integer(5));
    return spec::binary("+", s, spec::binary("**", spec::real(2), spec::unary("float", steps)));
  });
  const std::string right =
      "map_at s[i, j] from (i0, n * BN) = s[i, j] * rsqrt(D) + exp2(f32((i - j) % 5))";
  const check::Report r = check_score(right, score, exact_only(), "log2e");
  EXPECT_EQ(r.verdict, Verdict::holds) << check::print(r);
  EXPECT_EQ(r.exact.opaque, "");
  const std::string squares =
      "map_at s[i, j] from (i0, n * BN) = s[i, j] * rsqrt(D) + f32((i - j) % 5 * ((i - j) % 5))";
  EXPECT_EQ(check_score(squares, score, exact_only(), "log2e").verdict, Verdict::refuted);
}

TEST(ExactScores, take_sigmoid_through_tanh_and_through_exp_as_one) {
  const auto score = score_of([](spec::ExprPtr s) { return spec::unary("sigmoid", s); });
  for (const char* line : {"map s[i, j] = reciprocal(1.0 + exp2(-(s[i, j] * rsqrt(D)) * log2e))",
                           "map s[i, j] = 0.5 + 0.5 * tanh(s[i, j] * rsqrt(D) * 0.5)",
                           "map s[i, j] = exp2(s[i, j] * rsqrt(D) * log2e) / (1.0 + exp2(s[i, j] * "
                           "rsqrt(D) * log2e))"}) {
    const check::Report r = check_score(line, score);
    EXPECT_EQ(r.verdict, Verdict::holds) << line << "\n" << check::print(r);
    EXPECT_EQ(r.exact.opaque, "");
  }
  EXPECT_EQ(check_score("map s[i, j] = 0.5 + 0.5 * tanh(s[i, j] * rsqrt(D))", score).verdict,
            Verdict::refuted);
}

TEST(ExactScores, agree_through_an_opaque_operation_and_never_refute_through_one) {
  const auto score = score_of([](spec::ExprPtr s) { return spec::unary("relu", s); });
  const check::Report same = check_score("map s[i, j] = max(s[i, j] * rsqrt(D), 0.0)", score);
  EXPECT_EQ(same.verdict, Verdict::holds) << check::print(same);
  EXPECT_EQ(same.exact.opaque, "order");
  // Right for a positive factor, which the algebra does not know; and wrong.
  for (const char* line : {"map s[i, j] = max(s[i, j], 0.0) * rsqrt(D)",
                           "map s[i, j] = min(s[i, j] * rsqrt(D), 0.0)"}) {
    const check::Report r = check_score(line, score);
    EXPECT_EQ(r.verdict, Verdict::inconclusive) << line;
    ASSERT_FALSE(r.diagnostics.all().empty());
    EXPECT_EQ(r.diagnostics.all()[0].code, "check.opaque");
    EXPECT_TRUE(r.counterexample);
  }
  // What the values refute stays refuted.
  check::Options both = exact_only();
  both.values = true;
  both.cases = 2;
  const char* wrong = "map s[i, j] = min(s[i, j] * rsqrt(D), 0.0)";
  EXPECT_EQ(check_score(wrong, score, both).verdict, Verdict::refuted);
}

TEST(ExactScores, are_doubtful_where_a_comparison_of_reals_decides_what_runs) {
  const auto score = score_of([](spec::ExprPtr s) { return s; });
  const char* line =
      "if scale < slack:\n    map s[i, j] = s[i, j] * 1.0\n"
      "if not (scale < slack):\n    map s[i, j] = s[i, j] * 1.0";
  const check::Report same = check_score(line, score, exact_only(), "rsqrt(D) * log2e");
  EXPECT_EQ(same.verdict, Verdict::holds) << check::print(same);
  EXPECT_NE(same.exact.opaque.find("order"), std::string::npos);
  const check::Report other = check_score(
      "if scale < slack:\n    map s[i, j] = s[i, j] * 2.0\n"
      "if not (scale < slack):\n    map s[i, j] = s[i, j] * 2.0",
      score, exact_only(), "rsqrt(D) * log2e");
  EXPECT_EQ(other.verdict, Verdict::inconclusive);
}

TEST(ExactScores, do_not_run_where_an_integer_is_computed_from_a_real) {
  const auto score = score_of([](spec::ExprPtr s) {
    return spec::unary("float", spec::unary("int", spec::unary("floor", s)));
  });
  const check::Report r = check_score("map s[i, j] = s[i, j] * 1.0", score);
  EXPECT_FALSE(r.exact.ran);
  EXPECT_FALSE(r.exact.not_run.empty());
  EXPECT_EQ(r.verdict, Verdict::inconclusive);  // no reading ran
}

// ---- the report
TEST(ExactCheck, reaches_two_to_the_minus_hundred_and_says_so) {
  check::Options o = check::options_for(check::Effort::quick);
  o.self_check_step = 0;
  o.cases = 2;
  EXPECT_EQ(o.missed, 0x1p-50);
  o.missed = check::Options().missed;
  const auto program = test::parsed("causal", test::text_of("causal"));
  const check::Report r = check::check(*program, test::capture_of(test::form_of("causal")), o);
  ASSERT_EQ(r.verdict, Verdict::holds) << check::print(r);
  EXPECT_LE(r.exact.error_bound, 0x1p-100);
  EXPECT_GT(r.exact.error_bound, 0);
  EXPECT_GE(r.exact.runs, 2);
  const nlohmann::json json = check::to_json(r);
  EXPECT_EQ(json["effort"], "quick");
  EXPECT_EQ(json["exact"]["ran"], true);
  EXPECT_LE(json["exact"]["error_bound"], 0x1p-100);
  EXPECT_NE(check::print(r).find("holds for one order of the agents (quick check)"),
            std::string::npos);
}

// The schedules of a program whose blocks differ by their place cannot be closed.
TEST(Scope, is_said_in_the_first_line) {
  check::Options o = exact_only();
  o.values = true;
  o.cases = 1;
  const auto report = [&](const std::string& text) {
    return check::check(*test::parsed("scope", text), test::capture_of(test::form_of("full")), o);
  };
  const std::string full = test::text_of("full");
  o.further_scores = 0;
  const check::Report closed = report(full);
  EXPECT_EQ(check::scope(closed), check::Scope::every_launch) << check::print(closed);
  EXPECT_EQ(check::print(closed).rfind("holds, ", 0), 0u);
  std::string placed = full;
  placed.insert(placed.find("            fill acc = 0.0\n"),
                "            if u > 0:\n                sync_warpgroup me\n");
  o.laws = false;  // if.C2 forbids it; the schedules know by themselves
  const check::Report explored = report(placed);
  EXPECT_EQ(explored.verdict, Verdict::holds) << check::print(explored);
  EXPECT_EQ(check::scope(explored), check::Scope::explored);
  EXPECT_EQ(check::print(explored).rfind("holds for the launches explored (", 0), 0u);
  EXPECT_NE(check::print(explored).find("; only these: "), std::string::npos);
  EXPECT_EQ(check::to_json(explored)["holds_for"], "the launches explored");
}

TEST(ExactCheck, names_the_statement_and_shrinks) {
  const test::Edit edit = test::read_edit(test::wrong_files().at("bias_sign"));
  const auto program = test::parsed("bias_sign", test::apply(edit));
  check::Options o = exact_only();
  o.shrink = true;
  const check::Report r = check::check(*program, test::capture_of(test::form_of(edit.base)), o);
  ASSERT_EQ(r.verdict, Verdict::refuted);
  EXPECT_TRUE(r.counterexample->exact);
  EXPECT_EQ(r.counterexample->statement.rfind("map_real s[i, j]", 0), 0u) << check::print(r);
  EXPECT_EQ(r.counterexample->sizes.at("M"), 2);  // at i = j the bias is 0
  EXPECT_EQ(check::to_json(r)["counterexample"]["reading"], "exact");
}

}  // namespace
}  // namespace kw
