// Every file of tests/transfer/<rule>/, and of other families tests/transfer/<family>/: a form, a
// line
// "---", and what the rules make of the kernel: what each rule took out and put in, or the refusal.
// The kernel is Hopper's, or that of the target which a first line such as "target sm_80" names;
// one of a norm serves all. A first line "text attention_decode" names another of the corpus's for
// that target. A first line "deterministic" asks for sums in one order.
//
// KW_WRITE_CASES=1 rewrites the second halves; read the difference before committing it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "in_clone.h"
#include "support/files.h"
#include "transfer/transfer.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

namespace fs = std::filesystem;

std::string prefixed(const std::string& text, const char* prefix) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += prefix + line + "\n";
  return out;
}

std::string show(const Result& r) {
  std::string out;
  for (const AppliedRule& rule : r.rules)
    out += rule.name + "\n" + prefixed(rule.before, "  - ") + prefixed(rule.after, "  + ");
  for (const Condition& c : r.conditions)
    out += fmt::format("if {}: {}\n", tl::print(c.holds), c.why);
  for (const std::string& note : r.notes) out += "note: " + note + "\n";
  return out.empty() ? "unchanged\n" : out;
}

std::string show(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all())
    out += fmt::format("refused {}: {}\n  hint: {}\n", d.code, d.message, d.hint);
  return out;
}

class Cases : public testing::TestWithParam<std::string> {};

TEST_P(Cases, the_rules_make_of_it_what_the_file_says) {
  const fs::path path = fs::path(in_clone("/tests/transfer")) / GetParam();
  const std::string text = read_source(path.string())->text;
  const size_t rule = text.find("---\n");
  ASSERT_NE(rule, std::string::npos) << path << " has no line ---";
  Diagnostics d;
  std::string lines = text.substr(0, rule);
  const std::string name = take_line(lines, "target ", "sm_90a"),
                    own = take_line(lines, "text ", "");
  const bool deterministic = lines.rfind("deterministic\n", 0) == 0;
  const spec::Form form = form_of(lines);
  auto [kernel, target] = start_of(form, name, own);
  target.deterministic = deterministic;
  const auto result = transfer(kernel, form, target, d);
  const std::string got = result ? show(*result) : show(d);
  if (std::getenv("KW_WRITE_CASES")) {
    ASSERT_TRUE(write_file(path, text.substr(0, rule + 4) + got));
    return;
  }
  EXPECT_EQ(got, text.substr(rule + 4));
  if (!result) return;
  // The program is text of the language, and the same again from the same form.
  Diagnostics again;
  EXPECT_TRUE(tl::parse(make_source("again.tl", tl::print(result->program)), again))
      << render(again);
  const auto second = transfer(kernel, form, target, again);
  ASSERT_TRUE(second);
  EXPECT_TRUE(tl::equal(second->program, result->program));
}

std::vector<std::string> files() {
  std::vector<std::string> out;
  const fs::path root = in_clone("/tests/transfer");
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".case")
      out.push_back(fs::relative(entry.path(), root).string());
  std::sort(out.begin(), out.end());
  return out;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.size() - 5);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Cases, testing::ValuesIn(files()), test_name);

}  // namespace
}  // namespace kw::transfer
