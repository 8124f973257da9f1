// eval: how well a model changes kernels, directly and through TL.
#include "eval/eval.h"

#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "driver/proposer.h"
#include "driver/tiles.h"
#include "lift/lift.h"
#include "provider_options.h"
#include "support/targets.h"

namespace kw::cli {
namespace {

struct State {
  std::vector<std::string> specs;
  eval::Options options;
  models::Options provider;
  std::string transcript;
  check::Effort effort = check::Effort::usual;
  Output output;
};

// False where something was reported. Throws models::ProviderError.
bool measure_all(const State& state, std::vector<eval::Measured>& all, Diagnostics& d) {
  const auto tools =
      driver::known_target(state.options.target, d) ? driver::find_tools(d) : std::nullopt;
  const auto templates = tools ? driver::find_templates(tools->home, d) : std::nullopt;
  const auto file =
      tools ? driver::corpus_kernel(tools->home, state.options.target, d) : std::nullopt;
  const auto tiles = tools ? driver::find_tiles(tools->home, "", d) : std::nullopt;
  if (!templates || !file || !tiles) return false;
  const SourcePtr expert = read_input(file->string(), d);
  propose::Templates cuda{"", templates->user};
  const bool read = driver::read_prompts(tools->home, {{&cuda.system, "eval.cuda.system.md"}}, d);
  const auto lifted = expert && read ? lift::lift(expert, tools->clang, d) : std::nullopt;
  if (!lifted) return false;
  const std::unique_ptr<models::Provider> provider =
      open_provider(state.provider, state.transcript);
  const transfer::Target target{state.options.target, *tiles};
  for (const std::string& spec : state.specs) {
    const auto capture = driver::open_spec(*tools, {spec, "", "", "", {}}, d);
    if (!capture) return false;
    const size_t first = all.size();
    if (!eval::measure({*tools, *capture, target, *templates, cuda, expert, *lifted}, *provider,
                       state.options, all, d))
      return false;
    for (size_t n = first; n < all.size(); ++n)
      std::cerr << fmt::format("{} {}: {} of {} passed\n", all[n].spec, eval::name(all[n].arm),
                               std::ranges::count_if(all[n].samples, eval::passed),
                               all[n].samples.size());
  }
  return true;
}

}  // namespace

void add_eval(CLI::App& app, Result& result) {
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand(
      "eval",
      "Measure how often a model's changes of the expert's kernel pass: of its CUDA text, and of "
      "its TL program; no rule helps");
  command
      ->add_option("spec", state->specs, "Python files, or folders that capture wrote: the tasks")
      ->required();
  const std::map<std::string, eval::Arm> arms = {{"cuda", eval::Arm::cuda}, {"tl", eval::Arm::tl}};
  command->add_option("--arm", state->options.arms, "in which language it is asked; default both")
      ->transform(CLI::Transformer(arms))
      ->option_text("cuda|tl ...");
  command
      ->add_option("--samples", state->options.samples, "conversations of each task and language")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--attempts", state->options.loop.attempts,
                   "questions of one conversation, each with what was wrong with the answer before")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--jobs", state->options.jobs, "conversations at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--target", state->options.target, "GPU architecture: " + target_names())
      ->capture_default_str();
  add_effort(command, state->effort);
  command->add_option("--transcript", state->transcript,
                      "write every question and answer to this file; see kernelwright transcript");
  command->add_option("--out", state->output.out, "file for the table");
  command->add_flag("--json", state->output.json, "the table and every question as JSON");
  add_provider_options(command, state->provider);
  command->callback([state, &result] {
    Diagnostics d;
    std::vector<eval::Measured> all;
    state->options.loop.check = check::options_for(state->effort);
    try {
      if (!measure_all(*state, all, d)) {
        result = finish(driver::exit_for(d), d, state->output);
        return;
      }
    } catch (const models::ProviderError& e) {
      result = finish(e, d, state->output);
      return;
    }
    const bool good =
        give(state->output,
             state->output.json ? eval::to_json(all).dump(1) + "\n" : eval::print(all), d);
    result = finish(good ? Exit::holds : driver::exit_for(d), d, state->output);
  });
}

}  // namespace kw::cli
