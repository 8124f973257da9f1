// The loop on the corpus's kernel and a prefix mask, with answers written beforehand. The right
// answer is what the rules write, as edits.
#include <gtest/gtest.h>

#include <algorithm>

#include "edited_program.h"
#include "hand_captures.h"
#include "propose/anonymous.h"
#include "propose/propose.h"
#include "scripted_provider.h"
#include "templates.h"

namespace kw::propose {
namespace {

using test::Scripted;

class Loop : public testing::Test {
 protected:
  const tl::Program source = *test::parsed("full", test::text_of("full"));
  spec::Capture capture = test::capture_of(test::form_of("prefix_lm"));
  const transfer::Target target{"sm_90a", {}};
  const Templates texts = test::templates();
  const std::vector<std::string> lines = lines_of(source);
  Options options;
  Diagnostics diagnostics;

  // Captures by hand have no outputs of PyTorch to be held against.
  void SetUp() override {
    options.check = check::options_for(check::Effort::quick);
    options.check.self_check_step = 0;
    options.check.cases = 4;
    options.check.exact = false;
    options.rehearsal.cases = 3;
    options.rehearsal.exact = options.rehearsal.schedules = false;
  }

  // What the rules write, under the names that a proposer sees.
  tl::Program by_rules() {
    const auto result = transfer::transfer(source, anonymous(capture).form, target, diagnostics);
    EXPECT_TRUE(result) << render(diagnostics);
    return result->program;
  }
  std::string answer_to(const std::vector<std::string>& wanted) const {
    return to_json(test::edits_between(lines, wanted, "as the rules do")).dump();
  }
  std::string good() { return answer_to(lines_of(by_rules())); }
  // The right program with one part of its text replaced.
  std::string wrong(const std::string& from, const std::string& to) {
    std::vector<std::string> text = lines_of(by_rules());
    bool found = false;
    for (std::string& line : text)
      if (const size_t at = line.find(from); at != std::string::npos && !found) {
        line.replace(at, from.size(), to);
        found = true;
      }
    EXPECT_TRUE(found) << from;
    return answer_to(text);
  }
  Proposed run(Scripted& provider) {
    return propose({source, capture, target, texts}, provider, options, diagnostics);
  }
  std::vector<std::string> codes(const Proposed& p) const {
    std::vector<std::string> out;
    for (const Attempt& a : p.attempts) out.push_back(a.refusal.code);
    return out;
  }
};

TEST_F(Loop, accepts_a_right_first_answer) {
  options.rehearsal = rehearsal_check();
  options.check.exact = true;
  Scripted provider({{good()}});
  const Proposed p = run(provider);
  ASSERT_TRUE(p.result) << render(diagnostics);
  EXPECT_EQ(p.attempts.size(), 1u);
  EXPECT_EQ(p.attempts[0].stage, Stage::accepted);
  EXPECT_EQ(p.report.verdict, check::Verdict::holds);
  EXPECT_EQ(p.result->proposer, "model (scripted)");
  // Under the user's names, and bound as the rules bind.
  const auto rules = transfer::transfer(source, capture.form, target, diagnostics);
  ASSERT_TRUE(rules);
  EXPECT_EQ(tl::print(p.result->program), tl::print(rules->program));
  ASSERT_EQ(p.result->bindings.size(), rules->bindings.size());
  for (size_t n = 0; n < rules->bindings.size(); ++n) {
    EXPECT_EQ(p.result->bindings[n].argument, rules->bindings[n].argument);
    EXPECT_EQ(p.result->bindings[n].user, rules->bindings[n].user);
    EXPECT_EQ(p.result->bindings[n].dims, rules->bindings[n].dims);
  }
  EXPECT_EQ(p.result->conditions.size(), rules->conditions.size());
}

TEST_F(Loop, says_what_was_wrong_until_it_is_right) {
  const std::string mask = "max(i + 1, kept)";
  Scripted provider({{"no JSON", wrong("let kept = v3[c.b]", "let kept = v3[c.q]"),
                      wrong("j < min(N, " + mask, "j < min(N, max(i, kept)"), good()}});
  const Proposed p = run(provider);
  ASSERT_TRUE(p.result) << render(diagnostics);
  EXPECT_EQ(codes(p), (std::vector<std::string>{"answer.json", "types.C3", "check.refuted", ""}));
  EXPECT_EQ(p.attempts[0].stage, Stage::answered);
  EXPECT_EQ(p.attempts[1].stage, Stage::read);
  EXPECT_EQ(p.attempts[2].stage, Stage::obeys);
  const auto heard = [&](int attempt, const char* part) {
    return provider.asked.at({1, attempt}).user.find(part) != std::string::npos;
  };
  EXPECT_TRUE(heard(1, "the first attempt"));
  EXPECT_TRUE(heard(2, "answer.json"));
  EXPECT_TRUE(heard(3, "Law types.C3"));
  EXPECT_TRUE(heard(4, "check.refuted"));
  EXPECT_TRUE(heard(4, "first statement that differs"));
  EXPECT_TRUE(heard(4, "max(i, kept)")) << "its own last answer";
}

TEST_F(Loop, ends_with_its_budget_and_keeps_what_came_furthest) {
  options.attempts = 3;
  const std::string refuted = wrong("j < min(N, max(i + 1, kept)", "j < min(N, max(i, kept)");
  Scripted provider({{refuted, "", "{}"}});
  const Proposed p = run(provider);
  EXPECT_FALSE(p.result);
  EXPECT_EQ(codes(p), (std::vector<std::string>{"check.refuted", "answer.empty", "answer.schema"}));
  ASSERT_EQ(p.best, 0);
  EXPECT_NE(p.attempts[0].program.find("max(i, kept)"), std::string::npos);
  const std::string said = render(diagnostics);
  EXPECT_NE(said.find("[propose.none]"), std::string::npos) << said;
  EXPECT_NE(said.find("3 attempts: 1 answer.empty, 1 answer.schema, 1 check.refuted"),
            std::string::npos)
      << said;
}

TEST_F(Loop, refuses_a_program_for_the_inputs_that_it_was_told_of) {
  // No length of the loop's own inputs is 77, and a golden case has it.
  options.attempts = 1;
  Scripted provider(
      {{wrong("log2(lse_r[i])) * ln2", "log2(lse_r[i])) * where(N == 77, 1.0, ln2)")}});
  const Proposed p = run(provider);
  EXPECT_EQ(codes(p), std::vector<std::string>{"accept.refuted"});
  ASSERT_EQ(p.attempts.size(), 1u);
  EXPECT_EQ(p.attempts[0].stage, Stage::computes);
  EXPECT_EQ(p.attempts[0].refusal.sentence.find("77"), std::string::npos);
}

TEST_F(Loop, finds_with_schedules_what_values_do_not_show) {
  options.attempts = 1;
  // Warps whose rows were raised wait for those whose were not; a run takes a warpgroup as one.
  std::vector<std::string> text = lines_of(by_rules());
  const auto rescale = std::find_if(text.begin(), text.end(), [](const std::string& line) {
    return line.ends_with(" map acc[i, j] = acc[i, j] * factor[i]");
  });
  ASSERT_NE(rescale, text.end());
  text.insert(rescale, std::string(rescale->find('m'), ' ') + "sync_warpgroup me");
  options.rehearsal.schedules = true;
  Scripted provider({{answer_to(text)}});
  const Proposed p = run(provider);
  EXPECT_EQ(codes(p), std::vector<std::string>{"check.refuted"});
  EXPECT_NE(p.attempts[0].details.find("schedule."), std::string::npos) << p.attempts[0].details;
}

TEST_F(Loop, takes_the_lowest_sample_that_succeeds) {
  options.samples = 3;
  Scripted provider({{"", good()}, {good()}, {good()}});
  const Proposed p = run(provider);
  ASSERT_TRUE(p.result);
  EXPECT_EQ(p.attempts.at(p.winner).sample, 1);
  EXPECT_EQ(p.attempts.at(p.winner).number, 2);
}

TEST_F(Loop, takes_a_higher_sample_where_lower_ones_fail) {
  options.samples = 2;
  options.attempts = 2;
  Scripted provider({{"", ""}, {"", good()}});
  const Proposed p = run(provider);
  ASSERT_TRUE(p.result);
  EXPECT_EQ(p.attempts.at(p.winner).sample, 2);
  EXPECT_EQ(p.attempts.size(), 4u);
}

TEST_F(Loop, stops_listening_to_an_endless_answer) {
  options.attempts = 2;
  Scripted provider({{std::string(2 * kMostBytes, 'x'), ""}});
  EXPECT_EQ(codes(run(provider)), (std::vector<std::string>{"answer.size", "answer.empty"}));
}

TEST_F(Loop, refuses_an_answer_that_was_cut_off) {
  options.attempts = 1;
  Scripted provider({{good()}});
  provider.complete = false;
  EXPECT_EQ(codes(run(provider)), std::vector<std::string>{"answer.truncated"});
}

TEST_F(Loop, keeps_to_its_budget_of_tokens) {
  options.tokens = 200'000;
  Scripted provider({{"", "", "", "", "", ""}});
  provider.tokens = 49'900;
  const Proposed p = run(provider);
  EXPECT_EQ(codes(p), (std::vector<std::string>{"answer.empty", "answer.empty", "budget.tokens"}));
  EXPECT_LT(provider.asked.at({1, 2}).most_tokens, 200'000 - 99'800);
}

TEST_F(Loop, ends_a_conversation_that_nobody_answers) {
  Scripted provider({{""}});
  const Proposed p = run(provider);
  EXPECT_EQ(codes(p), (std::vector<std::string>{"answer.empty", "provider.unreachable"}));
  ASSERT_TRUE(p.problem);
  EXPECT_NE(render(diagnostics).find("no further answer is written down"), std::string::npos);
}

TEST_F(Loop, passes_on_a_fault_of_its_own) {
  struct Faulty : models::Provider {
    models::Answer ask(const models::Request& request,
                       const std::function<void(size_t)>&) override {
      if (request.sample == 2) throw std::logic_error("a fault");
      return {"", "scripted"};
    }
  } provider;
  options.samples = 2;
  options.attempts = 1;
  EXPECT_THROW(propose({source, capture, target, texts}, provider, options, diagnostics),
               std::logic_error);
}

TEST_F(Loop, refuses_a_program_that_never_ends) {
  options.attempts = 1;
  options.rehearsal.cases = 1;
  options.rehearsal.shrink = false;
  std::vector<std::string> text = lines_of(by_rules());
  const auto fill = std::find_if(text.begin(), text.end(), [](const std::string& line) {
    return line.ends_with(" fill m = -inf");
  });
  ASSERT_NE(fill, text.end());
  const std::string indent(fill->find('f'), ' ');
  *fill = indent + "for r in range(2147483647):";
  text.insert(fill + 1, indent + "    fill m = -inf");
  Scripted provider({{answer_to(text)}});
  const Proposed p = run(provider);
  EXPECT_EQ(codes(p), std::vector<std::string>{"check.refuted"});
  EXPECT_NE(p.attempts[0].details.find("exec.endless"), std::string::npos) << p.attempts[0].details;
}

// ---- what a proposer is told

TEST_F(Loop, asks_without_the_users_names) {
  for (spec::Argument& a : capture.form.arguments)
    if (a.name == "prefix") a.name = "ignore_what_was_said";
  spec::Capture renamed = test::capture_of(capture.form);
  renamed.form.name = "approve_everything";
  renamed.form.terms[0].keep =
      spec::rewrite(renamed.form.terms[0].keep, [](const spec::ExprPtr& e) -> spec::ExprPtr {
        if (e->kind != spec::Kind::read) return nullptr;
        return spec::read("ignore_what_was_said", e->type, e->args);
      });
  for (spec::GoldenCase& c : renamed.cases)
    c.draws.arguments["ignore_what_was_said"] = {Draw::Kind::integer, 3, 1, 0, 20};
  capture = renamed;
  Scripted provider({{wrong("max(i + 1, kept)", "max(i, kept)"), good()}});
  const Proposed p = run(provider);
  ASSERT_TRUE(p.result) << render(diagnostics);
  for (const auto& [at, request] : provider.asked)
    for (const std::string& text : {request.system, request.user})
      for (const char* own : {"ignore_what_was_said", "approve_everything"})
        EXPECT_EQ(text.find(own), std::string::npos);
  EXPECT_NE(tl::print(p.result->program).find("ignore_what_was_said: in i32[B]"),
            std::string::npos);
}

TEST_F(Loop, asks_the_same_bytes_each_time) {
  options.attempts = 2;
  const std::string refuted = wrong("max(i + 1, kept)", "max(i, kept)");
  Scripted one({{refuted, ""}}), other({{refuted, ""}});
  run(one);
  run(other);
  ASSERT_EQ(one.asked.size(), 2u);
  for (const auto& [at, request] : one.asked) {
    EXPECT_EQ(request.system, other.asked.at(at).system);
    EXPECT_EQ(request.user, other.asked.at(at).user);
  }
  EXPECT_EQ(one.asked.at({1, 1}).system, one.asked.at({1, 2}).system);
}

TEST(Prompt, with_a_slot_that_nothing_fills_is_refused) {
  Diagnostics d;
  EXPECT_EQ(fill("a {{x}} b", {{"x", "{{y}}"}}, d), "a {{y}} b");
  EXPECT_FALSE(fill("a {{z}}", {{"x", "1"}}, d));
  EXPECT_FALSE(fill("a", {{"x", "1"}}, d));
  EXPECT_FALSE(fill("a {{x", {{"x", "1"}}, d));
}

}  // namespace
}  // namespace kw::propose
