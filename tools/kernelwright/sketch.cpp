// sketch, size and schedule: a sketch by a model, and the two steps from one to a program that can
// be checked and lowered. Tiles are the passes' choice, or a model's.
#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "author/write.h"
#include "commands.h"
#include "console.h"
#include "driver/environment/author.h"
#include "driver/environment/home.h"
#include "driver/environment/tools.h"
#include "models/providers/provider_error.h"
#include "propose/anonymous.h"
#include "proposer.h"
#include "provider_options.h"
#include "sketch/schedule.h"
#include "sketch/size.h"
#include "tl/laws/laws.h"

namespace kw::cli {
namespace {

struct SketchState {
  std::string program, gpu, target, element;
  std::vector<std::string> params;
  Output output;
  // Where a model is asked.
  std::string who = "passes", transcript;
  author::Limits limits;
  models::Options provider;
  spec::CaptureRequest spec;
  check::Effort effort = check::Effort::usual;
  std::string scheduled;
};

void add_gpu(CLI::App* command, SketchState& state) {
  command->add_option("--gpu", state.gpu, "a file of gpus/, without .json")->required();
  command->add_option("--target", state.target,
                      "where the GPU runs several; default the first of its file");
}

void add_options(CLI::App* command, SketchState& state, const char* what) {
  command->add_option("program", state.program, what)->required();
  add_gpu(command, state);
  command->add_option("--out", state.output.out, "file for the program");
  command->add_flag("--json", state.output.json, "machine-readable findings");
}

void add_asking(CLI::App* command, SketchState& state) {
  const char* group = "Who proposes";
  command
      ->add_option("--attempts", state.limits.attempts,
                   "questions, each with what was wrong with the answer before")
      ->check(CLI::Range(1, 100))
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--conversation-tokens", state.limits.tokens,
                   "of the questions and answers together, at most; 0: any number")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--transcript", state.transcript,
                   "write every question and answer to this file; see kernelwright transcript")
      ->group(group);
  add_provider_options(command, state.provider);
}

std::optional<sketch::Machine> find_machine(const SketchState& state, Diagnostics& d) {
  const auto home = driver::find_home(d);
  if (!home) return std::nullopt;
  const auto gpu = timeline::find_gpu((home->root / "gpus").string(), state.gpu, d);
  if (!gpu) return std::nullopt;
  return sketch::machine(*gpu, state.target, d);
}

std::optional<tl::Program> read(const SketchState& state, Diagnostics& d) {
  const SourcePtr source = read_input(state.program, d);
  if (!source) return std::nullopt;
  auto program = tl::parse(source, d);
  if (program && !tl::verify(*program, d)) return std::nullopt;
  return program;
}

// NAME=NUMBER
bool read_params(const SketchState& state, std::map<std::string, int64_t>& params, Diagnostics& d) {
  for (const std::string& text : state.params) {
    const size_t at = text.find('=');
    int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] =
        std::from_chars(at == std::string::npos ? end : text.data() + at + 1, end, value);
    if (at == std::string::npos || at == 0 || error != std::errc() || stop != end || value < 1) {
      d.error("cli.param", {}, fmt::format("--param is '{}', and D=128 is its form", text));
      return false;
    }
    params[text.substr(0, at)] = value;
  }
  return true;
}

// After a conversation: what nobody was asked for in vain, or all attempts and why none did.
Result end(const SketchState& state, const author::Conversation& talk, const std::string& what,
           bool good, Diagnostics& d) {
  if (good) {
    std::cerr << fmt::format("{}: model ({}): {}\n", what, talk.who(),
                             author::count_refusals(talk.attempts()));
    return finish(Exit::holds, d, state.output);
  }
  if (d.has_errors()) return finish(driver::exit_for(d), d, state.output);
  const bool named = !state.output.out.empty() && state.output.out != "-";
  keep_attempts(named ? state.output.out : what, "",
                author::to_json(talk.attempts())
                        .dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
                    "\n",
                d);
  talk.report(what == "sketch" ? "a sketch" : what, d);
  return finish(talk.problem() ? models::exit_of(talk.problem()->kind) : Exit::inconclusive, d,
                state.output);
}

// Tiles by whoever answers.
Result size_by_model(const SketchState& state, const sketch::Request& request,
                     const tl::Program& program, Diagnostics& d) {
  const auto home = driver::find_home(d);
  const auto texts = home ? driver::find_author_texts(*home, d) : std::nullopt;
  const auto sketch = texts ? sketch::with_parameters(program, request, d) : std::nullopt;
  if (!sketch) return finish(driver::exit_for(d), d, state.output);
  try {
    const auto provider = open_provider(state.provider, state.transcript);
    author::Conversation talk(*provider, state.limits);
    const auto sized = author::ask_tiles(*sketch, request, texts->tiles, talk, nullptr, d);
    const bool good = sized && give(state.output, tl::print(sized->sized), d);
    return end(state, talk, "tiles", good, d);
  } catch (const models::ProviderError& e) {
    return finish(e, d, state.output);
  }
}

// A sketch by whoever answers.
Result draw(const SketchState& state) {
  Diagnostics d;
  const auto tools = driver::find_tools(d);
  const auto texts = tools ? driver::find_author_texts(tools->home, d) : std::nullopt;
  const auto machine = texts ? find_machine(state, d) : std::nullopt;
  const auto capture = machine ? driver::open_spec(*tools, state.spec, d) : std::nullopt;
  const author::Checks checks{propose::rehearsal_check(), check::options_for(state.effort)};
  const auto site =
      capture ? author::make_site(*capture, *machine, *texts, checks, d) : std::nullopt;
  if (!site) return finish(driver::exit_for(d), d, state.output);
  try {
    const auto provider = open_provider(state.provider, state.transcript);
    author::Conversation talk(*provider, state.limits);
    const auto written = author::ask_sketch(*site, texts->sketch, talk, d);
    bool good = written.has_value();
    if (good)
      good = give(state.output, tl::print(propose::with_names(written->program, capture->form)), d);
    if (good && !state.scheduled.empty())
      good = give({state.scheduled, false}, tl::print(written->accepted), d);
    return end(state, talk, "sketch", good, d);
  } catch (const models::ProviderError& e) {
    return finish(e, d, state.output);
  }
}

Result size(const SketchState& state) {
  Diagnostics d;
  const auto machine = find_machine(state, d);
  std::map<std::string, int64_t> params;
  const bool given = read_params(state, params, d);
  const auto program = read(state, d);
  bool good = machine && given && program;
  if (good && state.who == "model")
    return size_by_model(state, {*machine, params, state.element}, *program, d);
  if (good) {
    const auto sized = sketch::size(*program, {*machine, params, state.element}, d);
    good = sized && give(state.output, tl::print(*sized), d);
  }
  return finish(good ? Exit::holds : driver::exit_for(d), d, state.output);
}

Result schedule(const SketchState& state) {
  Diagnostics d;
  const auto machine = find_machine(state, d);
  const auto program = read(state, d);
  bool good = machine && program;
  if (good) {
    const auto scheduled = sketch::schedule(*program, *machine, d);
    good = scheduled && give(state.output, tl::print(*scheduled), d);
  }
  return finish(good ? Exit::holds : driver::exit_for(d), d, state.output);
}

}  // namespace

void add_size(CLI::App& app, Result& result) {
  auto state = std::make_shared<SketchState>();
  CLI::App* command =
      app.add_subcommand("size", "Choose tiles and places for a sketch on a GPU (sketches/)");
  add_options(command, *state, "SKETCH.tl");
  command->add_option("--param", state->params, "D=64: a parameter of the sketch; may be repeated");
  command->add_option("--dtype", state->element, "the element type, in the sketch's place")
      ->check(CLI::IsMember({"bf16", "f16"}));
  command
      ->add_option("--proposer", state->who,
                   "passes: no model is asked. model: one is, through the options below; the tiles "
                   "that it answers are checked against the GPU and the laws")
      ->check(CLI::IsMember({"passes", "model"}))
      ->option_text("passes|model [passes]")
      ->group("Who proposes");
  add_asking(command, *state);
  command->callback([state, &result] { result = size(*state); });
}

void add_sketch(CLI::App& app, Result& result) {
  auto state = std::make_shared<SketchState>();
  CLI::App* command = app.add_subcommand(
      "sketch", "Have a model write a sketch for a function, and check what the passes make of it");
  command
      ->add_option("spec", state->spec.spec,
                   "the user's Python file, or a folder that capture wrote")
      ->required();
  add_function(command, state->spec.function, state->spec.dtype);
  add_gpu(command, *state);
  add_effort(command, state->effort);
  command->add_option("--out", state->output.out, "file for the sketch");
  command->add_option("--scheduled", state->scheduled,
                      "file for the program that the passes made of it, which was checked");
  command->add_flag("--json", state->output.json, "machine-readable findings");
  add_asking(command, *state);
  command->callback([state, &result] { result = draw(*state); });
}

void add_schedule(CLI::App& app, Result& result) {
  auto state = std::make_shared<SketchState>();
  CLI::App* command = app.add_subcommand(
      "schedule", "Make a sized program a kernel: warpgroups, asynchronous copies, barriers");
  add_options(command, *state, "SIZED.tl");
  command->callback([state, &result] { result = schedule(*state); });
}

}  // namespace kw::cli
