// Transfer by a model: ask, read, check, say what was wrong, ask again.
//
// A provider of answers (models/providers/provider.h) is one more proposer behind the checker that
// judges the rules' programs. One conversation asks for edits of a program, at most `attempts`
// times; each answer goes through its form, the grammar, the laws, and a quick check of values,
// formula and schedules. What refuses it is the next question. Several conversations (samples) of
// the same question run in parallel; the lowest numbered that succeeds is taken, so that a run with
// the same answers ends the same way however fast each is.
//
// A proposer that has seen why it failed on some inputs may write a program for just these. So the
// loop checks other inputs than the verdict rests on (check::Options::rehearsal), and what passes
// it is checked as any program is, on inputs that no prompt ever spoke of; if that refutes, the
// proposer hears so and not where.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "check/check.h"
#include "models/providers/provider.h"
#include "propose/judge.h"
#include "propose/prompt.h"
#include "transfer/transfer.h"

namespace kw::propose {

struct Options {
  int samples = 1;            // conversations
  int attempts = 6;           // questions of each
  long tokens = 400'000;      // of questions and answers of each, together; 0: any number
  int answer_tokens = 16384;  // of one answer, at most
  int threads = 0;            // conversations at a time; 0: all
  check::Options rehearsal = rehearsal_check();  // the one whose findings the proposer hears
  check::Options check;                          // the one that accepts
};

// How far an attempt came.
enum class Stage { asked, answered, read, obeys, computes, accepted };
std::string_view name(Stage s);  // "no answer", "answer refused", ...

struct Attempt {
  int sample = 1, number = 1;
  Stage stage = Stage::asked;
  Refusal refusal;      // empty when accepted
  std::string details;  // what the check said
  models::Answer answer;
  std::string program;  // TL under the user's names; empty where the answer gave none
};

struct Proposed {
  std::optional<transfer::Result> result;  // accepted
  check::Report report;                    // of the check that accepted it
  std::vector<Attempt> attempts;           // by sample, then number
  int winner = -1, best = -1;              // of attempts; best: what came furthest, -1: nothing
  // Why nobody answered, the first time in the order of samples.
  std::optional<models::ProviderError> problem;
};

struct Task {
  const tl::Program& source;
  const spec::Capture& capture;
  const transfer::Target& target;
  const Templates& templates;
};

// Asks until a program is accepted or the budget is spent. Reports what transfer::begin and
// make_prompt do, and propose.none, with how often what refused, when nothing was accepted.
Proposed propose(const Task& task, models::Provider& provider, const Options& options,
                 Diagnostics& diagnostics);

// "6 attempts: 3 tl.syntax, 2 check.refuted, 1 answer.json"
std::string count_refusals(const std::vector<Attempt>& attempts);

// All attempts for a file: what was answered by whom, and what became of it.
nlohmann::ordered_json to_json(const Proposed& proposed);

}  // namespace kw::propose
