// Every program that the rules make (the cases of tests/transfer, and so every kind of change that
// the examples ask for) is printed as a CUDA file of its own, and reading that gives it back.
//
// Statements are read from the text's own tokens here. That clang accepts such files, and takes the
// same tokens from them, is asked of one in sixteen: it takes a hundred times as long.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "driver/environment/tools.h"
#include "in_clone.h"
#include "lift/lift.h"
#include "lower/print_module.h"
#include "support/files.h"
#include "tl/syntax/lexer.h"
#include "transfer/transfer.h"
#include "transfer_form.h"

namespace kw::driver {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> all_cases() {
  std::vector<fs::path> all;
  for (const auto& entry : fs::recursive_directory_iterator(in_clone("/tests/transfer")))
    if (entry.path().extension() == ".case") all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

// What the rules make of the case's form; nothing where they refuse it.
std::optional<tl::Program> made_of(const fs::path& path) {
  std::string form = read_source(path.string())->text;
  form.resize(form.find("---\n"));
  const std::string target = transfer::take_line(form, "target ", "sm_90a"),
                    own = transfer::take_line(form, "text ", "");
  Diagnostics d;
  const spec::Form of = transfer::form_of(form);
  const auto [kernel, to] = transfer::start_of(of, target, own);
  auto result = transfer::transfer(kernel, of, to, d);
  return result ? std::optional(std::move(result->program)) : std::nullopt;
}

std::string without_comments(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += line.substr(0, line.find("//")) + "\n";
  return out;
}

TEST(Printed, every_program_that_the_rules_make_is_given_back) {
  Diagnostics d;
  setenv("KERNELWRIGHT_HOME", in_clone().c_str(), 1);
  const auto tools = find_tools(d);
  ASSERT_TRUE(tools) << render(d);
  int printed = 0;
  for (const fs::path& path : all_cases()) {
    const std::optional<tl::Program> program = made_of(path);
    if (!program) continue;
    SCOPED_TRACE(path.string());
    Diagnostics why;
    const std::optional<std::string> cuda = lower::print_cuda(*program, why);
    ASSERT_TRUE(cuda) << render(why);
    const SourcePtr source = make_source("printed.cu", without_comments(*cuda));
    const auto read = lift::read_statements(source, tl::lex(source->text, tl::Spelling::cuda), why);
    ASSERT_TRUE(read) << render(why) << *cuda;
    ASSERT_EQ(tl::print(read->program), tl::print(*program));
    if (++printed % 16 != 0) continue;
    const auto lifted = lift::lift(make_source("printed.cu", *cuda), tools->clang, why);
    ASSERT_TRUE(lifted) << render(why) << *cuda;
    ASSERT_EQ(tl::print(*lifted), tl::print(*program));
  }
  EXPECT_GT(printed, 150);
}

}  // namespace
}  // namespace kw::driver
