#include "proposer.h"

#include <fmt/format.h>

#include <iostream>

#include "commands.h"
#include "console.h"
#include "propose/answer.h"
#include "propose/grammar.h"

namespace kw::cli {

std::unique_ptr<models::Provider> Proposer::open() const {
  return model() ? open_provider(provider, transcript) : nullptr;
}

void add_proposer(CLI::App* command, Proposer& proposer) {
  const char* group = "Who proposes";
  command
      ->add_option("--proposer", proposer.who,
                   "rules: no model is asked. model: one is, through the options below; what it "
                   "answers is checked like what the rules write")
      ->check(CLI::IsMember({"rules", "model"}))
      ->option_text("rules|model [rules]")
      ->group(group);
  command
      ->add_option("--attempts", proposer.loop.attempts,
                   "questions of one conversation, each with what was wrong with the answer before")
      ->check(CLI::Range(1, 100))
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--samples", proposer.loop.samples,
                   "conversations side by side; of those that succeed the first is taken")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--conversation-tokens", proposer.loop.tokens,
                   "of the questions and answers of one conversation, at most; 0: any number")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--transcript", proposer.transcript,
                   "write every question and answer to this file; see kernelwright transcript")
      ->group(group);
  add_provider_options(command, proposer.provider);
}

void keep_attempts(const std::string& stem, const std::string& best, const std::string& attempts,
                   Diagnostics& diagnostics) {
  if (attempts.empty()) return;
  const std::string record = stem + ".attempts.json", program = stem + ".best.tl";
  if (!give({record, false}, attempts, diagnostics)) return;
  if (best.empty() || !give({program, false}, best, diagnostics)) {
    std::cerr << fmt::format("kept {}; no answer gave a program\n", record);
    return;
  }
  std::cerr << fmt::format("kept {} (the program that came furthest) and {}\n", program, record);
}

void add_grammar(CLI::App& app, Result& result) {
  struct State {
    std::string format;
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand(
      "grammar", "What a model's answer may be, for servers that decode within a grammar");
  command->add_option("--format", state->format, "of the grammar")
      ->required()
      ->check(CLI::IsMember({"json-schema", "gbnf"}))
      ->option_text("json-schema|gbnf");
  command->add_option("--out", state->output.out, "the file to write");
  command->callback([state, &result] {
    Diagnostics d;
    const bool good = give(
        state->output,
        state->format == "gbnf" ? propose::gbnf() : propose::answer_schema().dump(1) + "\n", d);
    result = finish(good ? Exit::holds : Exit::bad_input, d, state->output);
  });
}

}  // namespace kw::cli
