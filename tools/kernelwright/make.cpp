// `kernelwright make`: all stages, live.
#include "driver/make.h"

#include <iostream>
#include <memory>

#include "commands.h"
#include "console.h"
#include "support/targets.h"

namespace kw::cli {

void add_make(CLI::App& app, Result& result) {
  struct State {
    driver::MakeOptions options;
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand("make", "A kernel from a specification: every stage");
  command->add_option("spec", state->options.spec, "the user's Python file")->required();
  command->add_option("--function", state->options.function, "which function of the file");
  command->add_option("--dtype", state->options.dtype, "bf16 or f16, for fp32 specifications");
  command->add_option("--target", state->options.target, "GPU architecture: " + target_names())
      ->capture_default_str();
  command->add_option("--tiles", state->options.tiles,
                      "a tile database of yours, before the shipped one");
  command->add_option("--out", state->options.out, "folder to write; default out/NAME");
  add_effort(command, state->options.effort);
  command->add_flag("--gpu", state->options.gpu, "also prove on this machine's GPU");
  command->add_flag("--json", state->output.json, "one JSON object a stage");
  command->callback([state, &result] {
    Diagnostics diagnostics;
    const driver::Say say = [&](const std::string& stage, const std::string& text, double s) {
      say_stage(stage, text, s, state->output);
    };
    const driver::Made made = driver::make(state->options, say, diagnostics);
    if (!made.explanation.empty()) std::cerr << made.explanation;
    result = finish(made.exit, diagnostics, state->output);
  });
}

}  // namespace kw::cli
