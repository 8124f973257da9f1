// Programs that somebody wrote to pass the check (tests/attacks/FAMILY/NAME.edit): each is an edit
// of what the rules make of a form, and ends as the file says, by the same check that everybody
// runs but for its number of cases.
//
//   expect: law if.C2            it breaks the law
//   expect: refuted              a case shows it, or the solver does with sizes that no case ran:
//                                which it finds is its own affair
//   expect: holds for N <= 4096  it is right up to there, and no launch goes beyond
//   expect: holds for data within 2^29  it is right for such integers, as the report says
//   expect: holds for reals within 2^24  and for integers of the data that become reals
//   expect: open check.opaque    undecided, with that code: no case that could run shows it
//   expect: not proved           no case shows it, and it holds for the sizes and data that ran
//   alone
//
// A line `product: s * 0.5` makes it a product of matrices of which each element s becomes that,
// and `gradients: of it` what is edited the kernel of its gradients.
//
// And what they edit holds; or ends as a line `unedited: not proved` says, where the sizes that
// would show it are more work than these tests take.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "attack_files.h"
#include "hand_captures.h"

namespace kw {
namespace {

using namespace test::attacks;

class Attacks : public testing::TestWithParam<std::string> {};

TEST_P(Attacks, end_as_they_should) {
  const Edit edit = edit_of(GetParam());
  const spec::Form form = form_of(edit);
  const auto right = right_program(form, target_of(edit));
  ASSERT_TRUE(right);
  Diagnostics d;
  const auto text = apply_edit(edit, tl::print(*right), d);
  ASSERT_TRUE(text) << render(d) << tl::print(*right);
  const auto wrong = tl::parse(make_source("wrong.tl", *text), d);
  ASSERT_TRUE(wrong) << render(d);
  const check::Report r = check::check(*wrong, test::capture_of(form), options());
  EXPECT_EQ(end_of(r), edit.head.at("expect")) << edit.about << "\n"
                                               << check::print(r) << check::not_proved(r);
}

INSTANTIATE_TEST_SUITE_P(Files, Attacks, testing::ValuesIn(names()), test_name);

// What the attacks change, each once.
std::vector<std::string> names_of_programs() {
  std::vector<std::string> out;
  std::set<std::string> seen;  // target and form
  for (const std::string& name : names()) {
    const Edit edit = edit_of(name);
    if (seen.insert(target_of(edit) + form_lines(edit)).second) out.push_back(name);
  }
  return out;
}

class Attacked : public testing::TestWithParam<std::string> {};

TEST_P(Attacked, program_holds_as_it_was) {
  const Edit edit = edit_of(GetParam());
  const spec::Form form = form_of(edit);
  const auto right = right_program(form, target_of(edit));
  ASSERT_TRUE(right);
  const check::Report r = check::check(*right, test::capture_of(form), options());
  const auto unedited = edit.head.find("unedited");
  EXPECT_EQ(end_of(r), unedited == edit.head.end() ? "holds" : unedited->second)
      << check::print(r) << check::not_proved(r);
}

INSTANTIATE_TEST_SUITE_P(Files, Attacked, testing::ValuesIn(names_of_programs()), test_name);

}  // namespace
}  // namespace kw
