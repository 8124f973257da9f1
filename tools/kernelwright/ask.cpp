// ask, transcript: one question to whoever answers, and what was asked and answered.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "models/wire/utf8.h"
#include "provider_options.h"

namespace kw::cli {
namespace {

using Json = nlohmann::json;

struct AskState {
  std::string user = "-", system, schema, transcript;
  int most_tokens = 16384;
  models::Options options;
  Output output;
};

std::optional<models::Request> request_of(const AskState& state, Diagnostics& d) {
  models::Request request;
  request.stage = "ask";
  request.most_tokens = state.most_tokens;
  const SourcePtr user = read_input(state.user, d);
  const SourcePtr system = state.system.empty() ? nullptr : read_input(state.system, d);
  const SourcePtr schema = state.schema.empty() ? nullptr : read_input(state.schema, d);
  if (d.has_errors()) return std::nullopt;
  request.user = user->text;
  if (system) request.system = system->text;
  if (schema) {
    request.schema = Json::parse(schema->text, nullptr, false);
    if (!request.schema.is_object()) {
      d.error("ask.schema", {}, fmt::format("'{}' is not a JSON object", state.schema));
      return std::nullopt;
    }
  }
  return request;
}

// How much has come, on a terminal.
class Progress {
 public:
  void operator()(size_t bytes) {
    if (!terminal_) return;
    std::cerr << fmt::format("\rask       {} bytes", bytes) << std::flush;
    said_ = true;
  }
  ~Progress() {
    if (said_) std::cerr << "\n";
  }

 private:
  const bool terminal_ = isatty(2);
  bool said_ = false;
};

Json answer_json(const models::Answer& a) {
  Json answer = {{"who", a.who},
                 {"complete", a.complete},
                 {"tokens_in", a.tokens_in},
                 {"tokens_out", a.tokens_out},
                 {"dollars", a.dollars}};
  if (models::not_utf8(a.text))
    answer["text_base64"] = models::to_base64(a.text);
  else
    answer["text"] = a.text;
  return answer;
}

int ask(AskState& state) {
  Diagnostics d;
  try {
    const auto request = request_of(state, d);
    if (!request) return finish(Exit::bad_input, d, state.output);
    const std::unique_ptr<models::Provider> provider =
        open_provider(state.options, state.transcript, models::Recorder::Existing::append);
    models::Answer answer;
    {
      Progress progress;
      answer = provider->ask(*request, std::ref(progress));
    }
    const std::string text = state.output.json ? answer_json(answer).dump() : answer.text;
    if (!give(state.output, text, d)) return finish(Exit::bad_input, d, state.output);
    if (!answer.complete)
      d.error("ask.cut", {}, "the answer is cut off where it reached its limit of tokens or bytes")
          .hint = "give a larger --most-tokens or --most-bytes";
    if (!state.output.json)
      say_stage("ask",
                fmt::format("answered {}{}; {} tokens read, {} written",
                            answer.who == "by hand" ? "" : "by ", answer.who, answer.tokens_in,
                            answer.tokens_out),
                0, state.output);
    return finish(answer.complete ? Exit::holds : Exit::inconclusive, d, state.output);
  } catch (const models::ProviderError& error) {
    return finish(error, d, state.output);
  }
}

}  // namespace

void add_ask(CLI::App& app, Result& result) {
  auto state = std::make_shared<AskState>();
  CLI::App* command = app.add_subcommand(
      "ask", "One question to a model, a person or a transcript; prints the answer");
  command->add_option("user", state->user,
                      "a file with the question; left out or -: standard input");
  command->add_option("--system", state->system, "a file with what goes before the question");
  command->add_option("--schema", state->schema,
                      "a JSON Schema that the endpoint is asked to hold its answer to");
  command
      ->add_option("--most-tokens", state->most_tokens,
                   "of the answer, its thoughts included (16384)")
      ->check(CLI::Range(1, 10'000'000));
  command->add_option("--transcript", state->transcript,
                      "a file to which the question and what came of it are added");
  add_provider_options(command, state->options);
  command->add_option("--out", state->output.out, "a file for the answer");
  command->add_flag("--json", state->output.json,
                    "the answer with who gave it and what it took; findings as JSON");
  command->callback([state, &result] { result = ask(*state); });
}

void add_transcript(CLI::App& app, Result& result) {
  struct State {
    std::string file;
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command =
      app.add_subcommand("transcript", "Show what was asked and answered, and by whom");
  command->add_option("file", state->file, "a transcript: JSON lines")->required();
  command->add_option("--out", state->output.out, "a file for the text");
  command->add_flag("--json", state->output.json, "the records as one JSON array");
  command->callback([state, &result] {
    Diagnostics d;
    try {
      const std::vector<models::Record> records = models::read_transcript(state->file);
      std::string text = models::readable(records);
      if (state->output.json) {
        Json all = Json::array();
        for (const models::Record& r : records) all.push_back(Json::parse(models::to_line(r)));
        text = all.dump(1);
      }
      result =
          finish(give(state->output, text, d) ? Exit::holds : Exit::bad_input, d, state->output);
    } catch (const models::ProviderError& error) {
      result = finish(error, d, state->output);
    }
  });
}

}  // namespace kw::cli
