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

#include <filesystem>
#include <map>
#include <set>

#include "check/check.h"
#include "hand_captures.h"
#include "in_clone.h"
#include "support/edits.h"
#include "tl/laws/laws.h"
#include "with_heads.h"

namespace kw {
namespace {

namespace fs = std::filesystem;

check::Options options() {
  check::Options o;
  o.cases = 6;
  o.exact_cases = 2;
  o.missed = 0x1p-50;
  o.further_scores = 8'000'000;
  o.self_check_step = 0;
  o.shrink = o.schedules = false;
  return o;
}

fs::path folder() { return in_clone("/tests/attacks"); }

Edit edit_of(const std::string& name) {
  Diagnostics d;
  const auto edit = read_edit((folder() / (name + ".edit")).string(), d);
  EXPECT_TRUE(edit) << render(d);
  return edit.value_or(Edit{});
}

// The lines of the form, as tests/unit/transfer_form.h reads them.
std::string form_lines(const Edit& edit) {
  std::string lines;
  for (const char* word : {"product", "argument", "queries", "q_row", "normaliser", "score", "keep",
                           "sink", "epilogue"})
    if (edit.head.count(word)) lines += fmt::format("{} {}\n", word, edit.head.at(word));
  if (edit.head.count("gradients")) lines += "gradients\n";
  return lines;
}

// Of two key heads and eight query heads, or of as many as it says; or a product.
spec::Form form_of(const Edit& edit) {
  if (edit.head.count("product"))
    return test::with_sizes(
        transfer::form_of(fmt::format("product\nvalue {}\n", edit.head.at("product"))));
  return test::with_heads(transfer::form_of(form_lines(edit)),
                          edit.head.count("heads") ? std::stoll(edit.head.at("heads")) : 8);
}

std::string target_of(const Edit& edit) {
  return edit.head.count("target") ? edit.head.at("target") : "sm_90a";
}

std::optional<tl::Program> right_program(const spec::Form& form, const std::string& target) {
  Diagnostics d;
  const auto [kernel, machine] = transfer::start_of(form, target);
  auto result = transfer::transfer(kernel, form, machine, d);
  EXPECT_TRUE(result) << render(d);
  if (!result) return std::nullopt;
  return tl::parse(make_source("right.tl", tl::print(result->program)), d);
}

std::string end_of(const check::Report& r) {
  const std::string code = r.diagnostics.all().empty() ? "" : r.diagnostics.all()[0].code;
  switch (r.verdict) {
    case check::Verdict::holds: {
      std::string limits;
      if (r.indices)
        for (const proofs::Limit& l : r.indices->limits)
          limits += (limits.empty() ? " for " : " and ") + proofs::print(l);
      if (r.indices && r.indices->small_reals) limits += " for reals within 2^24";
      if (r.indices && r.indices->small_data) limits += " for data within 2^29";
      return check::not_proved(r).empty() ? "holds" + limits : "not proved";
    }
    case check::Verdict::refuted:
      return "refuted";
    case check::Verdict::inconclusive:
      return code == "check.indices" ? "refuted" : "open " + code;
    case check::Verdict::invalid:
      return "law " + code;
  }
  return "";
}

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
  EXPECT_EQ(end_of(r), edit.head.at("expect")) << edit.about << "\n" << check::print(r);
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder()))
    if (entry.path().extension() == ".edit")
      out.push_back(fs::relative(entry.path(), folder()).replace_extension().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
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
  EXPECT_EQ(end_of(r), unedited == edit.head.end() ? "holds" : unedited->second) << check::print(r);
}

INSTANTIATE_TEST_SUITE_P(Files, Attacked, testing::ValuesIn(names_of_programs()), test_name);

}  // namespace
}  // namespace kw
