// Questions about a foreign kernel, asked until an answer can be taken.
//
// Every stage here is one shape: a question with a schema, an answer that is read or refused, and
// the refusal in the next question. What was taken stays taken: a later failure never undoes it.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/providers/provider.h"
#include "propose/answer.h"

namespace kw::foreign {

using Refusal = propose::Refusal;

struct Question {
  std::string stage;         // "lift.notes", ... "lower": what a transcript calls it
  std::string system, user;  // with {{feedback}} in it
  nlohmann::json schema;
};

// Why an answer was not enough, and what a person would want to see of it.
struct Complaint {
  Refusal refusal;  // empty code: nothing to complain of
  std::string details;
};

struct Attempt {
  std::string stage;
  int number = 1;
  std::string who;
  Refusal refusal;  // empty: taken
};

class Asker {
 public:
  Asker(models::Provider& provider, int attempts, int answer_tokens)
      : provider_(provider), left_(attempts), answer_tokens_(answer_tokens) {}

  // Asks until `dynamic_tiles` has nothing to complain of, or no attempts are left: then false.
  // `question` is made anew each time: what was taken is part of it. Stops at the first
  // ProviderError.
  bool ask(const std::function<Question()>& question,
           const std::function<Complaint(const nlohmann::json&)>& take);

  const std::vector<Attempt>& attempts() const { return attempts_; }
  const std::optional<models::ProviderError>& problem() const { return problem_; }
  // "6 answers: 3 tl.syntax, 1 answer.json"; empty where none was refused
  std::string count_refusals() const;
  // Who answered, each once, in order.
  std::vector<std::string> who() const;

 private:
  models::Provider& provider_;
  int left_, answer_tokens_;
  std::vector<Attempt> attempts_;
  std::optional<models::ProviderError> problem_;
};

}  // namespace kw::foreign
