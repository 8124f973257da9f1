// A text in CuTe is in nobody's language here: it has no laws, no executor runs it, and this
// machine has no GPU. What is known of it is what NVRTC says, with CUTLASS's headers. So an answer
// that compiles ends undecided, which is counted by itself, and never as a pass.
//
// The compiler reads what the text includes, and what it says goes back to the author. So a text
// that could name another file than CUTLASS's is refused before it is compiled.
#include "eval/cute.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <regex>

#include "author/lines.h"
#include "cute/cute.h"
#include "propose/anonymous.h"
#include "propose/words.h"
#include "support/lines.h"

namespace kw::eval {
namespace {

constexpr size_t kMostOfLog = 4000;  // bytes of what a compiler says
constexpr const char* kEntry = "attention_fwd";

author::Judged compiled(const Writing& writing, const std::string& text) {
  author::Judged judged;
  if (!only_cute_included(text, judged.refusal)) return judged;
  std::vector<std::string> extra = {"-default-device", "-w"};
  for (const std::string& folder : writing.headers) extra.push_back("-I" + folder);
  Diagnostics d;
  driver::build(writing.tools, make_source("kernel.cu", text), writing.site.machine.target,
                {kEntry}, 0, d, extra);
  for (const Diagnostic& one : d.all())
    if (one.severity == Severity::error && judged.refusal.code.empty())
      judged.refusal = {one.code, propose::one_line(one.message)};
  if (!judged.refusal.code.empty()) judged.details = propose::clipped(render(d), kMostOfLog);
  return judged;
}

// The argument struct of the printed example.
std::string arguments_in(const std::string& cute) {
  const size_t at = cute.find("struct Args"), end = cute.find("};", at);
  return end == std::string::npos ? "" : cute.substr(at, end + 3 - at);
}

}  // namespace

bool only_cute_included(const std::string& text, propose::Refusal& refusal) {
  static const std::regex allowed(
      R"(\s*#\s*(include\s*<(cute|cutlass|cuda)/[\w/]+(\.\w+)?>|pragma\s+unroll(\s+\d+)?)"
      R"(|ifn?def\s+\w+|endif)\s*(//.*)?)");
  for (const std::string& line : lines_of(text)) {
    const bool spliced = line.ends_with('\\') || line.ends_with("\\ ");
    const bool directive =
        line.find('#') != std::string::npos || line.find("%:") != std::string::npos ||
        line.find("?\?=") != std::string::npos || line.find("__has_include") != std::string::npos;
    if (!spliced && (!directive || std::regex_match(line, allowed))) continue;
    refusal = {"cute.include",
               fmt::format("the line `{}` is not allowed: of the preprocessor's lines there "
                           "are #include <cute/...>, <cutlass/...>, <cuda/...>, #pragma unroll, "
                           "#ifdef and #endif",
                           propose::clipped(line, 80))};
    return false;
  }
  return true;
}

bool has_cute_headers(const std::vector<std::string>& folders, Diagnostics& diagnostics) {
  for (const char* file : {"cute/tensor.hpp", "cuda/std/cstdint"}) {
    const bool found = std::ranges::any_of(folders, [&](const std::string& folder) {
      return std::filesystem::exists(std::filesystem::path(folder) / file);
    });
    if (found) continue;
    diagnostics
        .error("cute.headers", {},
               folders.empty()
                   ? std::string("a kernel in CuTe is compiled with CUTLASS's headers, and no "
                                 "folder with them is given")
                   : fmt::format("{} is in none of {}", file, fmt::join(folders, ", ")))
        .hint =
        "give --headers FOLDER for CUTLASS's include/ and for CCCL's, or leave --arm cute out";
    return false;
  }
  return true;
}

void ask_cute(const Writing& writing, author::Conversation& talk, Diagnostics& diagnostics) {
  const author::Site& site = writing.site;
  const auto example = cute::print_cute(site.scheduled, site.machine.target, diagnostics);
  if (!example) return;
  const author::Question question{
      "cute",
      writing.texts.cute,
      {{"example", *example}},
      {{"head", arguments_in(*example)}, {"function", propose::describe(site.nameless.form)}},
      author::lines_schema()};
  talk.ask(
      question,
      [&](const models::Answer& answer) {
        author::Judged judged;
        const auto text = author::read_lines(answer, judged.refusal);
        if (!text) return judged;
        judged = compiled(writing, *text);
        judged.shown = fmt::format("```\n{}```", *text);
        return judged;
      },
      diagnostics);
}

}  // namespace kw::eval
