// One question under a conversation's budget of tokens.
//
// Whatever is asked for (edits, tiles, a sketch, a kernel), an answer may be endless, an endpoint
// may not count, and a budget may be spent: each has a code, and none is the caller's to think of.
#pragma once
#include <optional>

#include "models/providers/provider.h"
#include "propose/answer.h"

namespace kw::propose {

enum class Came {
  answer,   // read it
  endless,  // it was cut off here, answer.size: the next question may say so
  nothing,  // budget.tokens, or provider.* and problem(): nobody answers any more
};

class Asker {
 public:
  // `tokens` of questions and answers, together; 0: any number.
  Asker(models::Provider& provider, long tokens) : provider_(provider), most_(tokens) {}

  // The request's most_tokens are the most of an answer; fewer where the budget has fewer.
  Came ask(models::Request request, models::Answer& answer, Refusal& refusal);

  const std::optional<models::ProviderError>& problem() const { return problem_; }

 private:
  models::Provider& provider_;
  const long most_;
  long spent_ = 0;
  std::optional<models::ProviderError> problem_;
};

}  // namespace kw::propose
