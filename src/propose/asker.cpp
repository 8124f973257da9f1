#include "propose/asker.h"

#include <fmt/format.h>

#include <algorithm>

#include "propose/words.h"

namespace kw::propose {
namespace {

// What a text costs where an endpoint does not count: models have about four bytes a token.
long estimated_tokens(size_t bytes) { return static_cast<long>(bytes / 4) + 1; }

struct Endless : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string_view name_of(models::ProviderError::Kind kind) {
  using Kind = models::ProviderError::Kind;
  switch (kind) {
    case Kind::unreachable:
      return "provider.unreachable";
    case Kind::refused_key:
      return "provider.refused_key";
    case Kind::rate_limited:
      return "provider.rate_limited";
    case Kind::bad_request:
      return "provider.bad_request";
    case Kind::server:
      return "provider.server";
    case Kind::timeout:
      return "provider.timeout";
    case Kind::malformed:
      return "provider.malformed";
    case Kind::budget:
      return "provider.budget";
  }
  return "provider.server";
}

}  // namespace

Came Asker::ask(models::Request request, models::Answer& answer, Refusal& refusal) {
  const long question = estimated_tokens(request.system.size() + request.user.size());
  constexpr long kLeast = 256;  // of an answer: shorter ones say nothing
  if (most_ > 0) {
    const long left = most_ - spent_ - question;
    if (left < kLeast) {
      refusal = {"budget.tokens",
                 fmt::format("{} tokens are left of {} of the conversation, and the question has "
                             "about {}",
                             std::max(0L, most_ - spent_), most_, question)};
      return Came::nothing;
    }
    request.most_tokens = static_cast<int>(std::min<long>(request.most_tokens, left));
  }
  try {
    answer = provider_.ask(request, [](size_t bytes) {
      if (bytes > kMostBytes)
        throw Endless(fmt::format("the answer goes on after {} bytes", bytes));
    });
  } catch (const Endless& e) {
    refusal = {"answer.size", fmt::format("{}, at most {} are read", e.what(), kMostBytes)};
    spent_ += question + estimated_tokens(kMostBytes);
    return Came::endless;
  } catch (const models::ProviderError& e) {
    refusal = {std::string(name_of(e.kind)), one_line(e.what())};
    problem_ = e;
    return Came::nothing;
  }
  spent_ += (answer.tokens_in ? answer.tokens_in : question) +
            (answer.tokens_out ? answer.tokens_out : estimated_tokens(answer.text.size()));
  return Came::answer;
}

}  // namespace kw::propose
