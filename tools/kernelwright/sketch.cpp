// size and schedule: the two steps from a sketch to a program that can be checked and lowered.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <vector>

#include "commands.h"
#include "console.h"
#include "driver/home.h"
#include "driver/tools.h"
#include "sketch/schedule.h"
#include "sketch/size.h"
#include "tl/laws.h"

namespace kw::cli {
namespace {

struct State {
  std::string program, gpu, target, element;
  std::vector<std::string> params;
  Output output;
};

void add_options(CLI::App* command, State& state, const char* what) {
  command->add_option("program", state.program, what)->required();
  command->add_option("--gpu", state.gpu, "a file of gpus/, without .json")->required();
  command->add_option("--target", state.target,
                      "where the GPU runs several; default the first of its file");
  command->add_option("--out", state.output.out, "file for the program");
  command->add_flag("--json", state.output.json, "machine-readable findings");
}

std::optional<sketch::Machine> find_machine(const State& state, Diagnostics& d) {
  const auto home = driver::find_home(d);
  if (!home) return std::nullopt;
  const auto gpu = timeline::find_gpu((home->root / "gpus").string(), state.gpu, d);
  if (!gpu) return std::nullopt;
  return sketch::machine(*gpu, state.target, d);
}

std::optional<tl::Program> read(const State& state, Diagnostics& d) {
  const SourcePtr source = read_input(state.program, d);
  if (!source) return std::nullopt;
  auto program = tl::parse(source, d);
  if (program && !tl::verify(*program, d)) return std::nullopt;
  return program;
}

// NAME=NUMBER
bool read_params(const State& state, std::map<std::string, int64_t>& params, Diagnostics& d) {
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

Result size(const State& state) {
  Diagnostics d;
  const auto machine = find_machine(state, d);
  std::map<std::string, int64_t> params;
  const bool given = read_params(state, params, d);
  const auto program = read(state, d);
  bool good = machine && given && program;
  if (good) {
    const auto sized = sketch::size(*program, {*machine, params, state.element}, d);
    good = sized && give(state.output, tl::print(*sized), d);
  }
  return finish(good ? Exit::holds : driver::exit_for(d), d, state.output);
}

Result schedule(const State& state) {
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
  auto state = std::make_shared<State>();
  CLI::App* command =
      app.add_subcommand("size", "Choose tiles and places for a sketch on a GPU (sketches/)");
  add_options(command, *state, "SKETCH.tl");
  command->add_option("--param", state->params, "D=64: a parameter of the sketch; may be repeated");
  command->add_option("--dtype", state->element, "the element type, in the sketch's place")
      ->check(CLI::IsMember({"bf16", "f16"}));
  command->callback([state, &result] { result = size(*state); });
}

void add_schedule(CLI::App& app, Result& result) {
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand(
      "schedule", "Make a sized program a kernel: workers, asynchronous copies, barriers");
  add_options(command, *state, "SIZED.tl");
  command->callback([state, &result] { result = schedule(*state); });
}

}  // namespace kw::cli
