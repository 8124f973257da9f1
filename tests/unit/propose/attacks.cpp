// The attacks (tests/attacks) as a model's answers: what passes no check of a program by somebody
// else passes none as a proposal, and what is accepted claims no more.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "attack_files.h"
#include "hand_captures.h"
#include "propose/anonymous.h"
#include "propose/propose.h"
#include "scripted_provider.h"
#include "templates.h"

namespace kw::propose {
namespace {

namespace files = test::attacks;

// Accepted by the check that attacks meet; the loop's own has fewer cases.
Options options() {
  Options o;
  o.attempts = 1;
  o.rehearsal.cases = 2;
  o.rehearsal.exact = o.rehearsal.schedules = o.rehearsal.shrink = false;
  o.check = files::options();
  return o;
}

// Under the names that a proposer sees, v0, v1, ..., but for the kernel's own arguments.
std::string without_names(std::string text, const spec::Form& form, const spec::Form& nameless) {
  const std::set<std::string> kernels = {"q", "k", "v", "a", "b"};
  for (size_t n = 0; n < form.arguments.size(); ++n)
    if (const std::string& name = form.arguments[n].name; !kernels.count(name)) {
      const std::string given = name + std::string(spec::kGiven);  // where the kernel has a name so
      const std::string& own = text.find(given + ":") == std::string::npos ? name : given;
      text = std::regex_replace(text, std::regex("\\b" + own + "\\b"), nameless.arguments[n].name);
    }
  return text;
}

class AttacksProposed : public testing::TestWithParam<std::string> {};

TEST_P(AttacksProposed, are_not_accepted_or_claim_no_more) {
  const Edit edit = files::edit_of(GetParam());
  const spec::Capture capture = test::capture_of(files::form_of(edit));
  const auto [source, target] = transfer::start_of(capture.form, files::target_of(edit));
  Diagnostics d;
  const auto right = files::right_program(capture.form, files::target_of(edit));
  const auto begun = transfer::begin(source, capture.form, target, d);
  ASSERT_TRUE(right && begun) << render(d);
  const auto wrong = apply_edit(edit, tl::print(*right), d);
  ASSERT_TRUE(wrong) << render(d);
  const std::string text = without_names(*wrong, capture.form, anonymous(capture).form);
  const auto program = tl::parse(make_source("wrong.tl", text), d);
  ASSERT_TRUE(program) << render(d);
  const auto edits = test::edits_between(lines_of(begun->program), lines_of(*program), "better");
  test::Scripted provider({{to_json(edits).dump()}});
  const Templates texts = test::templates();
  const Proposed p = propose({source, capture, target, texts}, provider, options(), d);
  const std::string expect = edit.head.at("expect");
  if (p.result)
    EXPECT_EQ(files::end_of(p.report), expect) << check::print(p.report);
  else
    EXPECT_NE(expect.substr(0, 5), "holds")
        << p.attempts.at(0).refusal.code << ": " << p.attempts.at(0).refusal.sentence;
}

// Models are not asked for gradients.
std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const std::string& name : files::names())
    if (!files::edit_of(name).head.count("gradients")) out.push_back(name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Files, AttacksProposed, testing::ValuesIn(names()), files::test_name);

}  // namespace
}  // namespace kw::propose
