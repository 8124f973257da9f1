// diff, explain, doctor: what differs, what a law says, what this machine has.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "driver/environment/sandbox.h"
#include "driver/environment/tools.h"
#include "proofs/solver/solver.h"
#include "runtime/launch/driver_api.h"
#include "support/process.h"
#include "tl/analysis/diff.h"
#include "tl/laws/laws.h"

namespace kw::cli {

void add_diff(CLI::App& app, Result& result) {
  struct State {
    std::string a, b;
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command =
      app.add_subcommand("diff", "What differs between two TL programs; exit 1 if any");
  command->add_option("a", state->a, "A.tl")->required();
  command->add_option("b", state->b, "B.tl")->required();
  command->add_flag("--json", state->output.json, "machine-readable results and findings");
  command->callback([state, &result] {
    Diagnostics d;
    std::optional<tl::Program> programs[2];
    for (int k = 0; k < 2; ++k)
      if (const SourcePtr source = read_input(k ? state->b : state->a, d))
        programs[k] = tl::parse(source, d);
    if (!programs[0] || !programs[1]) {
      result = finish(Exit::bad_input, d, state->output);
      return;
    }
    const std::string text = tl::print_diff(*programs[0], *programs[1]);
    std::cout << (state->output.json ? nlohmann::json{{"text", text}}.dump() + "\n" : text);
    result = text.empty() ? 0 : 1;
  });
}

void add_explain(CLI::App& app, Result& result) {
  struct State {
    std::string id;
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand("explain", "What a law says, e.g. explain wgmma.C1");
  command
      ->add_option("law", state->id,
                   "a law's number, a statement's word for all of its laws, or all")
      ->required();
  command->add_flag("--json", state->output.json, "machine-readable results and findings");
  command->callback([state, &result] {
    Diagnostics d;
    nlohmann::json found = nlohmann::json::array();
    for (const tl::Law& law : tl::laws())
      if (state->id == "all" || law.id == state->id ||
          law.id.substr(0, law.id.rfind('.')) == state->id)
        found.push_back({{"law", law.id}, {"text", law.text}});
    if (found.empty()) {
      d.error("cli.law", {}, fmt::format("there is no law '{}'", state->id)).hint =
          "laws are in docs/tl/statements.md; a number looks like wgmma.C1";
    } else if (state->output.json) {
      std::cout << nlohmann::json{{"laws", found}}.dump(1) << "\n";
    } else {
      for (const nlohmann::json& law : found)
        std::cout << law["law"].get<std::string>() << "  " << law["text"].get<std::string>()
                  << "\n";
    }
    result = finish(found.empty() ? Exit::bad_input : Exit::holds, d, state->output);
  });
}

void add_doctor(CLI::App& app, Result& result) {
  CLI::App* command = app.add_subcommand("doctor", "What this machine has and lacks");
  command->callback([&result] {
    bool complete = true;
    const auto line = [&](const char* what, bool has, const std::string& text, bool needed) {
      std::cout << fmt::format("{:<4} {:<10} {}\n", has ? "ok" : needed ? "NO" : "-", what, text);
      complete = complete && (has || !needed);
    };
    Diagnostics d;
    const auto tools = driver::find_tools(d);
    proofs::Solver solver;
    const bool z3 = solver.load(proofs::Solver::candidates());
    line("files", tools.has_value(), tools ? tools->home.root.string() : render(d), true);
    if (tools) {
      const ProcessResult torch = run_process(
          {tools->python, "-c", "import torch; print('PyTorch', torch.__version__)"}, {}, 120);
      line("python", torch.exit_code == 0,
           tools->python + ": " +
               (torch.exit_code == 0 ? torch.out.substr(0, torch.out.find('\n')) : "no PyTorch"),
           true);
      Diagnostics clang, nvrtc, driver;
      const auto version = lift::clang_version(tools->clang, clang);
      line("libclang", version.has_value(), version.value_or("not found"), true);
      const auto compiler = runtime::Nvrtc::find(tools->python, nvrtc);
      line("NVRTC", compiler.has_value(),
           compiler ? compiler->version() + " at " + compiler->path() : "not found", true);
      line("Z3", z3, z3 ? solver.version() : "none; without it nothing is proved for every size",
           false);
      Diagnostics isolation;
      const auto sandbox = driver::find_sandbox(isolation);
      const bool isolates = sandbox && sandbox->isolates();
      line("isolation", isolates,
           isolates ? sandbox->version +
                          ": a specification has no network, its own /tmp, and reads"
                          " what it cannot write"
           : sandbox ? "none: " + sandbox->why_not + "; a specification runs with your rights"
                     : isolation.all()[0].message,
           !sandbox);
      const bool gpu = runtime::Driver::open(driver) != nullptr;
      line("GPU", gpu, gpu ? "the NVIDIA driver answers" : "none; needed only by prove and bench",
           false);
    }
    result = complete ? 0 : static_cast<int>(Exit::bad_input);
  });
}

}  // namespace kw::cli
