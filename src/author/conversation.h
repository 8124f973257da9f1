// A conversation: a question, an answer, what refuses it, the question again with that.
//
// What is asked for differs (tiles, a sketch, a kernel); how is the same. One conversation may have
// several steps, a sketch and then its tiles: its questions are counted on, and its attempts and
// tokens are the budget of all steps together.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "propose/asker.h"
#include "support/diagnostic.h"

namespace kw::author {

struct Limits {
  int attempts = 6;           // questions
  long tokens = 400'000;      // of questions and answers, together; 0: any number
  int answer_tokens = 16384;  // of one answer, at most
};

// A text of prompts/ with its slots. `user` has the slot {{feedback}}, which is the conversation's.
struct Prompt {
  std::string system, user;
};

struct Question {
  std::string step;  // "sketch", "tiles", "kernel", "cute": the stage that a transcript names
  const Prompt& prompt;
  std::map<std::string, std::string> system_slots, user_slots;
  nlohmann::json schema;
};

struct Judged {
  propose::Refusal refusal;  // empty: accepted
  std::string details;       // several lines: a counterexample; may be empty
  std::string shown;         // the answer as its author is reminded of it; empty: not read
};
using Judge = std::function<Judged(const models::Answer&)>;

struct Attempt {
  int number = 1;
  std::string step;
  propose::Refusal refusal;
  std::string details;
  models::Answer answer;
  bool answered = true;  // false: budget.tokens or provider.*
};

class Conversation {
 public:
  Conversation(models::Provider& provider, const Limits& limits)
      : limits_(limits), asker_(provider, limits.tokens) {}

  // Asks until the judge accepts. False: out of attempts or tokens, or nobody answers, which
  // attempts() has; or reported, prompt.slot.
  bool ask(const Question& question, const Judge& judge, Diagnostics& diagnostics);

  const std::vector<Attempt>& attempts() const { return attempts_; }
  const std::optional<models::ProviderError>& problem() const { return asker_.problem(); }
  const std::string& who() const { return who_; }  // who gave the last answer

  // Why it came to nothing, as author.none: how often what refused, and what to do.
  void report(const std::string& what, Diagnostics& diagnostics) const;

 private:
  const Limits limits_;
  propose::Asker asker_;
  std::vector<Attempt> attempts_;
  std::string who_;
};

// "3 attempts: 2 tl.syntax, 1 sketch.fit"
std::string count_refusals(const std::vector<Attempt>& attempts);

// All attempts for a file: what was answered by whom, and what became of it.
nlohmann::ordered_json to_json(const std::vector<Attempt>& attempts);

}  // namespace kw::author
