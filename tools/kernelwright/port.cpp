// `kernelwright port` and `kernelwright rebase`: for people who have a kernel of their own.
#include <iostream>
#include <memory>

#include "commands.h"
#include "console.h"
#include "driver/start/rebase.h"

namespace kw::cli {
namespace {

// What port and rebase share of make's options.
template <typename Options>
void add_stages(CLI::App* command, Options& options, Output& output) {
  command->add_option("--tiles", options.tiles,
                      "a tile database of yours; without it the kernel's constants stay");
  add_effort(command, options.effort);
  command->add_flag("--gpu", options.gpu, "also prove on this machine's GPU");
  command->add_flag("--json", output.json, "one JSON object a stage");
}

// What a make ended with, said; the exit code.
Result told(const driver::Made& made, const Diagnostics& diagnostics, const Output& output) {
  if (!made.explanation.empty()) std::cerr << made.explanation;
  return finish(made.exit, diagnostics, output);
}

}  // namespace

void add_port(CLI::App& app, Result& result) {
  struct State {
    driver::MakeOptions options;
    Output output;
  };
  auto state = std::make_shared<State>();
  driver::MakeOptions& options = state->options;
  CLI::App* command = app.add_subcommand(
      "port",
      "Your own kernel, changed for a specification: every stage, and a patch on your file");
  command
      ->add_option("kernel", options.kernel, "KERNEL.cu: plain attention in the vocabulary of kw/")
      ->required();
  command->add_option("--spec", options.spec, "the user's Python file")->required();
  add_function(command, options.function, options.dtype);
  add_target(command, options.target);
  command->add_option("--out", options.out, "folder to write; default out/NAME");
  add_stages(command, options, state->output);
  command->callback([state, &result] {
    Diagnostics diagnostics;
    const driver::Made made = driver::make(state->options, to_console(state->output), diagnostics);
    result = told(made, diagnostics, state->output);
  });
}

void add_rebase(CLI::App& app, Result& result) {
  struct State {
    driver::RebaseOptions options;
    Output output;
  };
  auto state = std::make_shared<State>();
  driver::RebaseOptions& options = state->options;
  CLI::App* command = app.add_subcommand(
      "rebase", "A variant once more, on a newer version of its kernel: rules, and edits by hand");
  command->add_option("variant", options.variant, "the folder that make, port or rebase wrote")
      ->required();
  command->add_option("--onto", options.onto, "the new KERNEL.cu; the same one, to check edits")
      ->required();
  command->add_option("--out", options.out, "folder to write; default VARIANT-rebased");
  add_stages(command, options, state->output);
  command->callback([state, &result] {
    Diagnostics diagnostics;
    const driver::Made made =
        driver::rebase(state->options, to_console(state->output), diagnostics);
    result = told(made, diagnostics, state->output);
  });
}

}  // namespace kw::cli
