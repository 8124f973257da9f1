// A provider of answers that were written beforehand, and edits that turn one program into another.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "models/providers/provider.h"
#include "propose/patch.h"

namespace kw::test {

// Answers of each sample, in order; every question is kept.
class Scripted : public models::Provider {
 public:
  explicit Scripted(std::vector<std::vector<std::string>> answers) : answers_(std::move(answers)) {}

  models::Answer ask(const models::Request& request,
                     const std::function<void(size_t)>& heard) override {
    const std::lock_guard lock(mutex_);
    asked[{request.sample, request.attempt}] = request;
    const auto& own = answers_.at(request.sample - 1);
    if (request.attempt > static_cast<int>(own.size()))
      throw models::ProviderError(models::ProviderError::Kind::unreachable,
                                  "no further answer is written down");
    const std::string& text = own[request.attempt - 1];
    for (size_t bytes = 0; bytes < text.size(); bytes += 50'000) heard(bytes);
    heard(text.size());
    return {text, "scripted", complete, tokens, tokens};
  }

  std::map<std::pair<int, int>, models::Request> asked;  // by sample and attempt
  bool complete = true;
  long tokens = 0;  // of each question and of each answer

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::string>> answers_;
};

// Edits by which `from` becomes `to`: what is not of a longest common subsequence.
inline propose::Edits edits_between(const std::vector<std::string>& from,
                                    const std::vector<std::string>& to, const std::string& why) {
  const size_t n = from.size(), m = to.size();
  std::vector<std::vector<int>> common(n + 1, std::vector<int>(m + 1, 0));
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;)
      common[i][j] = from[i] == to[j] ? common[i + 1][j + 1] + 1
                                      : std::max(common[i + 1][j], common[i][j + 1]);
  propose::Edits edits{why, {}};
  for (size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && from[i] == to[j]) {
      ++i, ++j;
      continue;
    }
    const size_t first = i;
    std::vector<std::string> text;
    while (i < n || j < m) {
      if (i < n && j < m && from[i] == to[j]) break;
      if (j == m || (i < n && common[i + 1][j] >= common[i][j + 1]))
        ++i;
      else
        text.push_back(to[j++]);
    }
    const auto trimmed = [&](size_t k) { return from[k].substr(from[k].find_first_not_of(' ')); };
    if (i == first)  // nothing goes: the text stands after the line before
      edits.edits.push_back({propose::EditKind::insert_after, int(first), int(first),
                             trimmed(first - 1), std::move(text)});
    else
      edits.edits.push_back({text.empty() ? propose::EditKind::remove : propose::EditKind::replace,
                             int(first) + 1, int(i), trimmed(first), std::move(text)});
  }
  return edits;
}

}  // namespace kw::test
