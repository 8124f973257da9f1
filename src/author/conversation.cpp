#include "author/conversation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "propose/prompt.h"
#include "propose/words.h"

namespace kw::author {
namespace {

constexpr size_t kMostDetails = 4000;  // bytes of what a check says

std::string feedback(const Judged* last) {
  if (!last) return "This is the first attempt.";
  std::string out;
  if (!last->shown.empty()) out += fmt::format("The last answer was:\n\n{}\n\n", last->shown);
  out += fmt::format("It was refused.\n\n{}: {}\n", last->refusal.code, last->refusal.sentence);
  if (!last->details.empty())
    out += fmt::format("\n```\n{}\n```\n", propose::clipped(last->details, kMostDetails));
  return out + "\nAnswer anew, with all of it.";
}

}  // namespace

bool Conversation::ask(const Question& question, const Judge& judge, Diagnostics& diagnostics) {
  const auto system = propose::fill(question.prompt.system, question.system_slots, diagnostics);
  if (!system) return false;
  std::optional<Judged> last;
  while (static_cast<int>(attempts_.size()) < limits_.attempts) {
    auto slots = question.user_slots;
    slots["feedback"] = feedback(last ? &*last : nullptr);
    const auto user = propose::fill(question.prompt.user, slots, diagnostics);
    if (!user) return false;
    Attempt attempt;
    attempt.number = static_cast<int>(attempts_.size()) + 1;
    attempt.step = question.step;
    const propose::Came came = asker_.ask(
        {question.step, attempt.number, 1, *system, *user, question.schema, limits_.answer_tokens},
        attempt.answer, attempt.refusal);
    last = Judged{attempt.refusal, "", ""};
    if (came == propose::Came::answer) {
      who_ = attempt.answer.who;
      last = judge(attempt.answer);
    }
    attempt.refusal = last->refusal;
    attempt.details = last->details;
    attempt.answered = came != propose::Came::nothing;
    attempts_.push_back(std::move(attempt));
    if (came == propose::Came::nothing) return false;
    if (last->refusal.code.empty()) return true;
  }
  return false;
}

void Conversation::report(const std::string& what, Diagnostics& diagnostics) const {
  Diagnostic& d = diagnostics.error(
      "author.none", {}, fmt::format("no answer gave {}: {}", what, count_refusals(attempts_)));
  if (!attempts_.empty() && !attempts_.back().refusal.code.empty())
    d.notes.push_back({"the last: " + attempts_.back().refusal.sentence, {}});
  d.hint = problem() ? problem()->what() : "allow more attempts, or ask another model";
}

std::string count_refusals(const std::vector<Attempt>& attempts) {
  std::map<std::string, int> counts;
  for (const Attempt& a : attempts)
    if (!a.refusal.code.empty()) ++counts[a.refusal.code];
  std::vector<std::pair<std::string, int>> order(counts.begin(), counts.end());
  std::ranges::stable_sort(order, std::greater{}, &std::pair<std::string, int>::second);
  std::vector<std::string> parts;
  for (const auto& [code, n] : order) parts.push_back(fmt::format("{} {}", n, code));
  return fmt::format("{} attempt{}: {}", attempts.size(), attempts.size() == 1 ? "" : "s",
                     parts.empty() ? "none refused" : fmt::format("{}", fmt::join(parts, ", ")));
}

nlohmann::ordered_json to_json(const std::vector<Attempt>& attempts) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Attempt& a : attempts)
    all.push_back({{"attempt", a.number},
                   {"step", a.step},
                   {"code", a.refusal.code},
                   {"sentence", a.refusal.sentence},
                   {"details", a.details},
                   {"who", a.answer.who},
                   {"tokens_in", a.answer.tokens_in},
                   {"tokens_out", a.answer.tokens_out},
                   {"dollars", a.answer.dollars},
                   {"answer", a.answer.text}});
  return {{"attempts", all}};
}

}  // namespace kw::author
