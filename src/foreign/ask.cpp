#include "foreign/ask.h"

#include <fmt/format.h>

#include <algorithm>

#include "propose/words.h"

namespace kw::foreign {
namespace {

constexpr size_t kMostDetails = 6000;  // bytes of what a check or a compiler says

std::string feedback(const Complaint& last) {
  if (last.refusal.code.empty()) return "This is the first attempt.";
  std::string out = fmt::format("The last answer was not enough.\n\n{}: {}\n", last.refusal.code,
                                last.refusal.sentence);
  if (!last.details.empty())
    out += fmt::format("\n```\n{}\n```\n", propose::clipped(last.details, kMostDetails));
  return out;
}

std::string with_feedback(std::string text, const Complaint& last) {
  constexpr std::string_view slot = "{{feedback}}";
  if (const size_t at = text.find(slot); at != std::string::npos)
    text.replace(at, slot.size(), feedback(last));
  return text;
}

}  // namespace

bool Asker::ask(const std::function<Question()>& question,
                const std::function<Complaint(const nlohmann::json&)>& take) {
  Complaint last;
  for (int number = 1; left_ > 0; ++number, --left_) {
    const Question q = question();
    models::Request request{q.stage,  number,        1, q.system, with_feedback(q.user, last),
                            q.schema, answer_tokens_};
    models::Answer answer;
    try {
      answer = provider_.ask(request, [](size_t bytes) {
        if (bytes > 2 * propose::kMostBytes)
          throw models::ProviderError(models::ProviderError::Kind::malformed,
                                      "the answer does not end");
      });
    } catch (const models::ProviderError& error) {
      problem_ = error;
      return false;
    }
    Refusal refusal;
    const auto json = propose::read_json(answer, q.schema, refusal);
    last = json ? take(*json) : Complaint{refusal, ""};
    attempts_.push_back({q.stage, number, answer.who, last.refusal});
    if (last.refusal.code.empty()) {
      --left_;
      return true;
    }
  }
  return false;
}

std::string Asker::count_refusals() const {
  std::map<std::string, int> counts;
  for (const Attempt& a : attempts_)
    if (!a.refusal.code.empty()) ++counts[a.refusal.code];
  if (counts.empty()) return {};
  std::string list;
  for (const auto& [code, count] : counts)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, code);
  return fmt::format("{} answer{}: {}", attempts_.size(), attempts_.size() == 1 ? "" : "s", list);
}

std::vector<std::string> Asker::who() const {
  std::vector<std::string> out;
  for (const Attempt& a : attempts_)
    if (!a.who.empty() && std::find(out.begin(), out.end(), a.who) == out.end())
      out.push_back(a.who);
  return out;
}

}  // namespace kw::foreign
