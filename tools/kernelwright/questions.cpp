// diff, explain, doctor: what differs, what a law says, what this machine has.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "driver/tools.h"
#include "runtime/driver_api.h"
#include "support/process.h"
#include "tl/diff.h"
#include "tl/laws.h"

namespace kw::cli {

void add_diff(CLI::App& app, Result& result) {
  struct State {
    std::string a, b;
  };
  auto state = std::make_shared<State>();
  CLI::App* command =
      app.add_subcommand("diff", "What differs between two TL programs; exit 1 if any");
  command->add_option("a", state->a, "A.tl")->required();
  command->add_option("b", state->b, "B.tl")->required();
  command->callback([state, &result] {
    Diagnostics d;
    std::optional<tl::Program> programs[2];
    for (int k = 0; k < 2; ++k)
      if (const SourcePtr source = read_input(k ? state->b : state->a, d))
        programs[k] = tl::parse(source, d);
    if (!programs[0] || !programs[1]) {
      result = finish(Exit::bad_input, d, {});
      return;
    }
    const std::string text = tl::print_diff(*programs[0], *programs[1]);
    std::cout << text;
    result = text.empty() ? 0 : 1;
  });
}

void add_explain(CLI::App& app, Result& result) {
  auto id = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("explain", "What a law says, e.g. explain gemm_async.C1");
  command->add_option("law", *id, "a law's number, or a statement's word for all of its laws")
      ->required();
  command->callback([id, &result] {
    bool found = false;
    for (const tl::Law& law : tl::laws()) {
      const bool wanted = law.id == *id || law.id.substr(0, law.id.rfind('.')) == *id;
      if (wanted) std::cout << law.id << "  " << law.text << "\n";
      found = found || wanted;
    }
    if (!found)
      std::cerr << fmt::format(
          "error[cli.law]: there is no law '{}'\n"
          "  help: laws are in docs/tl.md; a number looks like gemm_async.C1\n",
          *id);
    result = found ? 0 : static_cast<int>(Exit::bad_input);
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
      const bool gpu = runtime::Driver::open(driver) != nullptr;
      line("GPU", gpu, gpu ? "the NVIDIA driver answers" : "none; needed only by prove and bench",
           false);
    }
    result = complete ? 0 : static_cast<int>(Exit::bad_input);
  });
}

}  // namespace kw::cli
