#include "propose/prompt.h"

#include <fmt/format.h>

#include <set>

#include "propose/anonymous.h"
#include "propose/family.h"
#include "propose/manual.h"
#include "propose/patch.h"
#include "propose/words.h"

namespace kw::propose {
namespace {

constexpr size_t kMostDetails = 4000;  // bytes of what a check says

std::string feedback_text(const Feedback* last) {
  if (!last) return "This is the first attempt.";
  std::string out;
  if (last->edits)
    out +=
        fmt::format("The last answer was:\n\n```json\n{}\n```\n\n", to_json(*last->edits).dump());
  out += fmt::format(
      "The last answer was refused, and nothing of it is in the program above.\n\n"
      "{}: {}\n",
      last->refusal.code, last->refusal.sentence);
  if (!last->details.empty())
    out += fmt::format("\n```\n{}\n```\n", clipped(last->details, kMostDetails));
  return out + "\nAnswer with all edits of the numbered program, not with changes of that answer.";
}

}  // namespace

std::optional<std::string> fill(const std::string& text,
                                const std::map<std::string, std::string>& slots,
                                Diagnostics& diagnostics) {
  std::string out;
  std::set<std::string> seen;
  const auto refuse = [&](const std::string& message) {
    diagnostics.error("prompt.slot", {}, message).hint = "see docs/llm/proposers.md";
    return std::nullopt;
  };
  for (size_t at = 0;;) {
    const size_t open = text.find("{{", at);
    out += text.substr(at, open - at);
    if (open == std::string::npos) break;
    const size_t close = text.find("}}", open);
    const std::string name = text.substr(open + 2, close - open - 2);
    const auto slot = slots.find(name);
    if (close == std::string::npos || slot == slots.end())
      return refuse(fmt::format("the prompt has a slot '{}', and there is none of that name",
                                clipped(name, 40)));
    out += slot->second;
    seen.insert(name);
    at = close + 2;
  }
  for (const auto& [name, value] : slots)
    if (!seen.count(name)) return refuse(fmt::format("the prompt has no slot '{}'", name));
  return out;
}

std::optional<Prompt> make_prompt(const Templates& templates, const std::vector<std::string>& lines,
                                  const spec::Form& form, const Feedback* last,
                                  Diagnostics& diagnostics) {
  const auto system = fill(templates.system,
                           {{"statements", statements_manual()},
                            {"expressions", expressions_manual()},
                            {"laws", laws_manual()}},
                           diagnostics);
  const auto user = fill(templates.user,
                         {{"program", numbered(lines)},
                          {"function", describe(form)},
                          {"letters", Family::of(form).letters(templates)},
                          {"feedback", feedback_text(last)}},
                         diagnostics);
  if (!system || !user) return std::nullopt;
  return Prompt{*system, *user};
}

}  // namespace kw::propose
