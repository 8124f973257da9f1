// build, prove and bench: from CUDA text to a cubin, and what a GPU says about it.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "driver/environment/tools.h"
#include "lift/lift.h"
#include "lower/launch_plan.h"
#include "support/process.h"
#include "support/targets.h"

namespace kw::cli {
namespace {

// Another program of ours, beside this one; its output is passed on.
int run_beside(const std::vector<std::string>& command) {
  const ProcessResult run = run_process(command, {}, 3600);
  std::cout << run.out;
  std::cerr << run.err;
  return run.exit_code;
}

}  // namespace

void add_build(CLI::App& app, Result& result) {
  struct State {
    std::string kernel, target = "sm_90a";
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand(
      "build", "Compile a kernel to a cubin with NVRTC and audit it; spills are refused");
  command->add_option("kernel", state->kernel, "KERNEL.cu")->required();
  add_target(command, state->target);
  command->add_option("--out", state->output.out, "the .cubin file to write")->required();
  command->add_flag("--json", state->output.json, "machine-readable results and findings");
  command->callback([state, &result] {
    Diagnostics d;
    const bool known = driver::known_target(state->target, d);
    const auto tools = known ? driver::find_tools(d) : std::nullopt;
    const SourcePtr kernel = known ? read_input(state->kernel, d) : nullptr;
    std::optional<driver::Built> built;
    if (tools && kernel) {
      // The argument struct's size is known from the program, and the audit holds the cubin to it.
      const auto program = lift::lift(kernel, tools->clang, d);
      const auto plan = program ? lower::plan_launch(*program, state->target, d) : std::nullopt;
      if (plan)
        built =
            driver::build(*tools, kernel, state->target, plan->entries(), plan->parameter_bytes, d);
    }
    const bool good = built && give(state->output, built->cubin, d);
    if (good) {
      const nlohmann::json facts = {{"registers", built->resources.registers},
                                    {"spills", 0},
                                    {"compiler", built->compiler},
                                    {"seconds", built->seconds}};
      if (state->output.json)
        std::cout << facts.dump(1) << "\n";
      else
        std::cerr << fmt::format("{}: {} registers at entry, 0 spills, {} in {:.1f} s\n",
                                 state->target, built->resources.registers, built->compiler,
                                 built->seconds);
    }
    result = finish(good ? Exit::holds : driver::exit_for(d), d, state->output);
  });
}

void add_prove(CLI::App& app, Result& result) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("prove", "Hold a kernel against its goldens on this GPU");
  command->add_option("folder", *folder, "a folder that make wrote")->required();
  command->callback([folder, &result] {
    result = run_beside({driver::beside("kernelwright-prove"), *folder});
  });
}

void add_bench(CLI::App& app, Result& result) {
  auto folders = std::make_shared<std::vector<std::string>>();
  CLI::App* command =
      app.add_subcommand("bench", "Time kernels beside every peer of PyTorch on this GPU");
  command->add_option("folders", *folders, "folders that make wrote")->required();
  command->callback([folders, &result] {
    Diagnostics d;
    const auto tools = driver::find_tools(d);
    if (!tools) {
      result = finish(Exit::bad_input, d, {});
      return;
    }
    std::vector<std::string> words = {tools->python,
                                      (tools->home.root / "bench/bench.py").string()};
    words.insert(words.end(), folders->begin(), folders->end());
    result = run_beside(words);
  });
}

}  // namespace kw::cli
