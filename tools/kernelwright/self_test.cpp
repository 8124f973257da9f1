// `kernelwright self-test`: planted bugs, which must be caught before anything is certified.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "driver/self_test/cpu_self_test.h"
#include "driver/self_test/gpu_self_test.h"
#include "support/self_test_record.h"
#include "support/targets.h"

namespace kw::cli {
namespace {

struct SelfTestState {
  driver::GpuSelfTestOptions gpu;
  std::string write;
  int step = 1;
  Output output;
};

Exit run_here(const SelfTestState& state, Diagnostics& diagnostics) {
  const auto home = driver::find_home(diagnostics);
  if (!home) return Exit::bad_input;
  const auto result = driver::run_cpu_self_test(
      *home, state.step, [](const std::string& line) { std::cerr << line << "\n"; }, diagnostics);
  if (!result) return Exit::bad_input;
  const bool passed = result->surprises.empty();
  if (state.output.json)
    std::cout << driver::to_json(*result).dump(1) << "\n";
  else
    std::cout << fmt::format(
        "self-test of {}: {} wrong programs refused, {} right ones accepted, "
        "{} surprises, {:.1f} s\n",
        build_name(), result->wrong, result->right, result->surprises.size(), result->seconds);
  // A part that passes says nothing of the rest; a part that fails says enough.
  if (passed && state.step > 1) return Exit::inconclusive;
  if (!keep_self_test("cpu", driver::to_json(*result))) {
    diagnostics.error(
        "self_test.record", {},
        fmt::format("cannot write {}: {}", self_test_file().string(), strerror(errno)));
    return Exit::bad_input;
  }
  return passed ? Exit::holds : Exit::refuted;
}

Exit write_folder(const SelfTestState& state, Diagnostics& diagnostics) {
  const bool known = driver::known_target(state.gpu.target, diagnostics);
  const auto tools = known ? driver::find_tools(diagnostics) : std::nullopt;
  const bool written =
      tools && driver::write_gpu_self_test(
                   *tools, state.write, state.gpu,
                   [](const std::string& line) { std::cerr << line << "\n"; }, diagnostics);
  return written ? Exit::holds : driver::exit_for(diagnostics);
}

}  // namespace

void add_self_test(CLI::App& app, Result& result) {
  auto state = std::make_shared<SelfTestState>();
  CLI::App* command = app.add_subcommand(
      "self-test",
      "Run planted bugs through check and keep the result for this build; with --write, compile "
      "those that `kernelwright-prove --self-test` runs on a GPU");
  command->add_option("--write", state->write, "the folder for a GPU machine");
  command->add_option("--target", state->gpu.target, "its architecture: " + target_names())
      ->capture_default_str();
  command->add_option("--keys", state->gpu.lengths, "numbers of keys")
      ->delimiter(',')
      ->check(CLI::Range(128, 1 << 20))
      ->capture_default_str();
  command->add_option("--only", state->gpu.only, "planted bugs by their names; default all")
      ->delimiter(',');
  command
      ->add_option("--step", state->step,
                   "of the wrong programs only every Nth, where N is this; the result is not kept")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--json", state->output.json, "machine-readable results and findings");
  command->callback([state, &result] {
    Diagnostics diagnostics;
    const Exit exit =
        state->write.empty() ? run_here(*state, diagnostics) : write_folder(*state, diagnostics);
    result = finish(exit, diagnostics, state->output);
  });
}

}  // namespace kw::cli
