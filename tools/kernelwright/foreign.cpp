// `kernelwright foreign lift` and `foreign lower`: kernels in nobody's vocabulary, through a model.
#include "driver/export/foreign.h"

#include <iostream>
#include <memory>

#include "commands.h"
#include "console.h"
#include "provider_options.h"

namespace kw::cli {
namespace {

struct ForeignState {
  driver::ForeignOptions options;
  models::Options provider;
  std::string transcript;
  Output output;
};

void add_common(CLI::App* command, ForeignState& state) {
  driver::ForeignOptions& options = state.options;
  command->add_option("--sources", options.sources, "the folder that the kernel's files lie in")
      ->required();
  command->add_option("--out", options.out, "the folder to write")->required();
  command->add_option("--function", options.spec.function, "which function of the file");
  command->add_option("--dtype", options.spec.dtype, "bf16 or f16, for fp32 specifications");
  add_effort(command, options.effort);
  command->add_option("--attempts", options.attempts, "answers, at most")
      ->check(CLI::Range(1, 200))
      ->capture_default_str();
  command->add_option("--transcript", state.transcript,
                      "write every question and answer to this file; see kernelwright transcript");
  command->add_flag("--json", state.output.json, "machine-readable findings");
  add_provider_options(command, state.provider);
}

using Stage = driver::ForeignEnd (*)(const driver::ForeignOptions&, models::Provider&,
                                     Diagnostics&);

int run(const ForeignState& state, Stage stage) {
  Diagnostics diagnostics;
  std::unique_ptr<models::Provider> provider;
  try {
    provider = open_provider(state.provider, state.transcript, models::Recorder::Existing::append);
  } catch (const models::ProviderError& error) {
    return finish(error, diagnostics, state.output);
  }
  const driver::ForeignEnd end = stage(state.options, *provider, diagnostics);
  if (!end.explanation.empty()) std::cerr << end.explanation << "\n";
  if (!end.said.empty()) std::cerr << end.said << "\n";
  return finish(end.exit, diagnostics, state.output);
}

}  // namespace

void add_foreign(CLI::App& app, Result& result) {
  CLI::App* group = app.add_subcommand(
      "foreign", "Kernels that are not in our vocabulary, understood and changed by a model");
  group->require_subcommand(1);

  auto lifting = std::make_shared<ForeignState>();
  CLI::App* lift = group->add_subcommand(
      "lift", "A foreign kernel to a TL program that is checked; what an earlier run took is kept");
  lift->add_option("kernel", lifting->options.kernel, "KERNEL.json, its description")->required();
  lift->add_option("--spec", lifting->options.spec.spec,
                   "the function that the kernel computes as it is")
      ->required();
  add_common(lift, *lifting);
  lift->callback([lifting, &result] { result = run(*lifting, driver::lift_foreign); });

  auto lowering = std::make_shared<ForeignState>();
  CLI::App* lower = group->add_subcommand(
      "lower",
      "The change of a lifted program as a patch on the kernel's own files; exit 3 until "
      "a GPU has proven it (--gpu, or kernelwright-prove)");
  lower->add_option("lift", lowering->options.kernel, "the folder that foreign lift wrote")
      ->required();
  lower->add_option("--program", lowering->options.program, "PROGRAM.tl, changed by transfer")
      ->required();
  lower->add_option("--spec", lowering->options.spec.spec, "the function that it computes")
      ->required();
  lower->add_option("--target", lowering->options.target,
                    "GPU architecture to compile for; default the description's");
  lower->add_flag("--gpu", lowering->options.gpu,
                  "prove each answer that compiles on this machine's GPU, and tell who answers "
                  "what it finds");
  add_common(lower, *lowering);
  lower->callback([lowering, &result] { result = run(*lowering, driver::lower_foreign); });
}

}  // namespace kw::cli
