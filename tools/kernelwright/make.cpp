// `kernelwright make`: all stages, live, of one specification or of several in turn.
#include "driver/make/make.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <vector>

#include "commands.h"
#include "console.h"
#include "proposer.h"

namespace kw::cli {

namespace {
namespace fs = std::filesystem;

// Beside the folder that was not made.
std::string attempts_stem(const driver::MakeOptions& options) {
  fs::path out =
      options.out.empty() ? fs::path("out") / fs::path(options.spec).stem() : fs::path(options.out);
  if (!out.has_filename()) out = out.parent_path();
  std::error_code ignored;
  if (out.has_parent_path()) fs::create_directories(out.parent_path(), ignored);
  return out.string();
}

// What --from says: a word, or a file of TL.
bool read_from(const std::string& from, driver::MakeOptions& options, Diagnostics& diagnostics) {
  const bool file = fs::path(from).extension() == ".tl";
  options.from_sketch = file || from == "sketch";
  if (file) options.sketch = from;
  if (options.from_sketch || from == "expert") return true;
  diagnostics
      .error("driver.from", {},
             fmt::format("--from is '{}', and expert, sketch or a program NAME.tl is due", from))
      .hint = "a kernel of your own in CUDA is changed by `kernelwright port`";
  return false;
}

}  // namespace

void add_make(CLI::App& app, Result& result) {
  struct State {
    std::vector<std::string> specs;
    driver::MakeOptions options;
    std::string from = "expert";
    Proposer proposer;
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand("make", "A kernel from a specification: every stage");
  command->add_option("spec", state->specs, "the user's Python file, or several")->required();
  add_function(command, state->options.function, state->options.dtype);
  add_training(
      command, state->options.training,
      "two kernels in one folder: of the function, with what its gradients take, and of its "
      "gradients");
  command->add_flag("--deterministic", state->options.deterministic,
                    "of gradients (--backward): the same bits in every run");
  add_target(command, state->options.target);
  command
      ->add_option("--from", state->from,
                   "expert: the expert's kernel, and a sketch where none is for the target; "
                   "sketch: the one of sketches/ for such a function, sized and scheduled for the "
                   "target; NAME.tl: a sketch of yours likewise, or a sized or scheduled program "
                   "from there on")
      ->option_text("expert|sketch|NAME.tl [expert]");
  command->add_option("--tiles", state->options.tiles,
                      "a tile database of yours, before the shipped one");
  command->add_option(
      "--out", state->options.out,
      "folder to write; default out/NAME. Of several specifications, the folder of theirs");
  add_effort(command, state->options.effort);
  add_require(command, state->options.require_proof);
  command->add_flag("--gpu", state->options.gpu, "also prove on this machine's GPU");
  command->add_flag("--json", state->output.json, "one JSON object a stage");
  add_proposer(command, state->proposer);
  command->callback([state, &result] {
    if (Diagnostics d; !read_from(state->from, state->options, d)) {
      result = finish(Exit::bad_input, d, state->output);
      return;
    }
    std::unique_ptr<models::Provider> provider;
    try {
      provider = state->proposer.open();
    } catch (const models::ProviderError& e) {
      Diagnostics d;
      result = finish(e, d, state->output);
      return;
    }
    state->options.provider = provider.get();
    state->options.propose = state->proposer.loop;
    const driver::Say say = to_console(state->output);
    std::vector<std::string> failed;
    Exit end = Exit::holds;
    for (const std::string& spec : state->specs) {
      driver::MakeOptions options = state->options;
      options.spec = spec;
      if (state->specs.size() > 1 && !options.out.empty())
        options.out = fs::path(options.out) / fs::path(spec).stem();
      Diagnostics diagnostics;
      const driver::Made made = driver::make(options, say, diagnostics);
      if (!made.explanation.empty()) std::cerr << made.explanation;
      if (made.exit != Exit::holds && !made.attempts.empty())
        keep_attempts(attempts_stem(options), made.best, made.attempts, diagnostics);
      finish(made.exit, diagnostics, state->output);
      end = worse(end, made.exit);
      if (made.exit != Exit::holds)
        failed.push_back(fmt::format("{} ({})", spec, static_cast<int>(made.exit)));
    }
    if (state->specs.size() > 1)
      say("made",
          fmt::format("{} of {}{}", state->specs.size() - failed.size(), state->specs.size(),
                      failed.empty() ? "" : fmt::format("; not {}", fmt::join(failed, ", "))),
          0);
    result = static_cast<int>(end);
  });
}

}  // namespace kw::cli
