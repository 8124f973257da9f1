// One command a stage; each reads and writes files, so that any two can be run apart.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "check/check.h"
#include "commands.h"
#include "console.h"
#include "cute/cute.h"
#include "driver/environment/proposer.h"
#include "driver/environment/tiles.h"
#include "driver/environment/tools.h"
#include "driver/make/failure.h"
#include "driver/self_test/cpu_self_test.h"
#include "lift/lift.h"
#include "lower/lower.h"
#include "proposer.h"
#include "support/files.h"
#include "support/targets.h"
#include "tl/laws/laws.h"
#include "tl/laws/laws_target.h"
#include "transfer/transfer.h"

namespace kw::cli {
namespace fs = std::filesystem;
namespace {

struct SpecOptions {
  spec::CaptureRequest request;
  void add_to(CLI::App* command, bool positional) {
    command
        ->add_option(positional ? "spec" : "--spec", request.spec,
                     "the user's Python file, or a folder that capture wrote")
        ->required();
    add_function(command, request.function, request.dtype);
    add_training(command, request.training);
  }
};

void add_output(CLI::App* command, Output& output, const char* what) {
  command->add_option("--out", output.out, what);
  command->add_flag("--json", output.json, "machine-readable results and findings");
}

// A TL program that obeys the laws, or nothing.
std::optional<tl::Program> read_program(const std::string& path, Diagnostics& diagnostics) {
  const SourcePtr source = read_input(path, diagnostics);
  if (!source) return std::nullopt;
  std::optional<tl::Program> program = tl::parse(source, diagnostics);
  if (program && !tl::verify(*program, diagnostics)) return std::nullopt;
  return program;
}

// What transfer and check work on; `capture` is missing when either could not be read.
struct Opened {
  std::optional<tl::Program> program;
  std::optional<spec::Capture> capture;
};

Opened open(const std::string& program, const spec::CaptureRequest& spec,
            Diagnostics& diagnostics) {
  Opened opened;
  const auto tools = driver::find_tools(diagnostics);
  opened.program = read_program(program, diagnostics);
  if (tools && opened.program) opened.capture = driver::open_spec(*tools, spec, diagnostics);
  return opened;
}

// What a rule changed, on standard error: three lines, or with --json an object a line.
void say_rule(const transfer::AppliedRule& r, const Output& output) {
  if (output.json)
    std::cerr << nlohmann::json{{"rule", r.name}, {"before", r.before}, {"after", r.after}}.dump()
              << "\n";
  else
    std::cerr << fmt::format("rule {}\n  - {}\n  + {}\n", r.name, r.before, r.after);
}

// How much of the expert's text changed, likewise.
void say_changes(const lower::Lowered& lowered, const Output& output) {
  const auto& [removed, added] = std::pair(lowered.changes.removed, lowered.changes.added);
  if (output.json)
    std::cerr
        << nlohmann::json{{"removed", removed}, {"added", added}, {"lines", lowered.lines}}.dump()
        << "\n";
  else
    std::cerr << fmt::format("-{} +{} of {} lines\n", removed, added, lowered.lines);
}

// Transfer by whoever answers: the accepted program is the result, and without one the attempts
// are kept.
int ask(const Proposer& proposer, const Opened& opened, const transfer::Target& target,
        const Output& output, Diagnostics& d) {
  const auto tools = driver::find_tools(d);
  const auto templates = tools ? driver::find_templates(tools->home, d) : std::nullopt;
  if (!templates) return finish(driver::exit_for(d), d, output);
  std::unique_ptr<models::Provider> provider;
  try {
    provider = proposer.open();
  } catch (const models::ProviderError& e) {
    return finish(e, d, output);
  }
  const propose::Proposed asked = propose::propose(
      {*opened.program, *opened.capture, target, *templates}, *provider, proposer.loop, d);
  if (asked.result) {
    std::cerr << fmt::format("{}: {}; -{} +{} statements\n", asked.result->proposer,
                             propose::count_refusals(asked.attempts),
                             asked.result->statements_removed, asked.result->statements_added);
    const bool good = give(output, tl::print(asked.result->program), d);
    return finish(good ? Exit::holds : driver::exit_for(d), d, output);
  }
  if (asked.attempts.empty()) return finish(driver::exit_for(d), d, output);
  const std::string stem =
      output.out.empty() || output.out == "-" ? opened.capture->form.name : output.out;
  keep_attempts(stem, asked.best < 0 ? "" : asked.attempts[asked.best].program,
                driver::attempts_text(asked), d);
  return finish(driver::exit_for(asked), d, output);
}

}  // namespace

void add_capture(CLI::App& app, Result& result) {
  struct State {
    SpecOptions spec;
    Output output;
    bool form = false;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand(
      "capture", "Trace a PyTorch function; print its graph, or with --form its attention form");
  state->spec.add_to(command, true);
  command->add_flag("--form", state->form, "print the form as a person would write it");
  add_output(command, state->output, "folder for the graph and the goldens");
  command->callback([state, &result] {
    Diagnostics d;
    const auto tools = driver::find_tools(d);
    std::optional<spec::Capture> capture;
    if (tools) {
      spec::CaptureRequest& request = state->spec.request;
      request.out = state->output.out;
      capture = state->output.out.empty() ? driver::open_spec(*tools, request, d)
                                          : driver::capture(*tools, request, d);
    }
    if (capture) {
      const std::string form = spec::print(capture->form);
      std::cout << (state->output.json ? nlohmann::json{{"form", form}}.dump() + "\n" : form);
      std::cout.flush();
      for (const Note& note : capture->form.notes) std::cerr << "note: " << text_of(note) << "\n";
    }
    result = finish(capture ? Exit::holds : driver::exit_for(d), d, state->output);
  });
}

void add_lift(CLI::App& app, Result& result) {
  struct State {
    std::string kernel;
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand("lift", "CUDA source to a TL program");
  command->add_option("kernel", state->kernel, "KERNEL.cu, or - for standard input")->required();
  add_output(command, state->output, "the .tl file to write");
  command->callback([state, &result] {
    Diagnostics d;
    const auto tools = driver::find_tools(d);
    const SourcePtr source = read_input(state->kernel, d);
    std::optional<tl::Program> program;
    if (tools && source) program = lift::lift(source, tools->clang, d);
    const bool good =
        program && tl::verify(*program, d) && give(state->output, tl::print(*program), d);
    result = finish(good ? Exit::holds : driver::exit_for(d), d, state->output);
  });
}

void add_transfer(CLI::App& app, Result& result) {
  struct State {
    std::string program, target = "sm_90a", tiles;
    bool keep_order = false, deterministic = false;
    SpecOptions spec;
    Proposer proposer;
    check::Effort effort = check::Effort::usual;
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command =
      app.add_subcommand("transfer", "Change a TL program so that it computes a specification");
  command->add_option("program", state->program, "PROGRAM.tl of plain softmax attention")
      ->required();
  state->spec.add_to(command, false);
  add_target(command, state->target);
  command->add_option("--tiles", state->tiles, "a tile database of yours, before the shipped one");
  command->add_flag(
      "--keep-order", state->keep_order,
      "leave blocks of the output in the kernel's order, as a foreign launch has them");
  command
      ->add_flag("--deterministic", state->deterministic,
                 "of gradients: the same bits in every run")
      ->needs("--backward");
  add_output(command, state->output, "the .tl file to write");
  add_proposer(command, state->proposer);
  add_effort(command, state->effort);
  command->get_option("--check")->group("Who proposes");
  command->callback([state, &result] {
    Diagnostics d;
    Opened opened;
    if (driver::known_target(state->target, d))
      opened = open(state->program, state->spec.request, d);
    std::optional<std::vector<transfer::Tiles>> tiles;
    if (opened.capture && tl::verify_for(*opened.program, state->target, d))
      if (const auto tools = driver::find_tools(d))
        tiles = driver::find_tiles(tools->home, state->tiles, d);
    std::optional<transfer::Result> changed;
    if (tiles && state->proposer.model()) {
      state->proposer.loop.check = check::options_for(state->effort);
      result = ask(state->proposer, opened,
                   {state->target, *tiles, 0, state->keep_order, state->deterministic},
                   state->output, d);
      return;
    }
    if (tiles)
      changed = transfer::transfer(
          *opened.program, opened.capture->form,
          {state->target, *tiles, 0, state->keep_order, state->deterministic}, d);
    if (changed)
      for (const transfer::AppliedRule& r : changed->rules) say_rule(r, state->output);
    const bool good = changed && give(state->output, tl::print(changed->program), d);
    result = finish(good ? Exit::holds : driver::exit_for(d), d, state->output);
  });
}

void add_effort(CLI::App* command, check::Effort& effort) {
  const std::map<std::string, check::Effort> efforts = {{"quick", check::Effort::quick},
                                                        {"default", check::Effort::usual},
                                                        {"full", check::Effort::full}};
  command
      ->add_option("--check", effort,
                   "quick: few cases, no schedules; full: and the exhaustive checker of schedules; "
                   "said in the report and the certificate")
      ->transform(CLI::Transformer(efforts))
      ->default_str("default")
      ->option_text("quick|default|full [default]");
}

void add_require(CLI::App* command, bool& proof) {
  command
      ->add_option_function<std::string>(
          "--require", [&proof](const std::string&) { proof = true; },
          "proof: what holds, but is not proved for every launch, is inconclusive (exit 3)")
      ->check(CLI::IsMember({"proof"}))
      ->option_text("proof");
}

void add_function(CLI::App* command, std::string& function, std::string& dtype) {
  command->add_option("--function", function, "which function of the file");
  command->add_option("--dtype", dtype, "bf16 or f16, for fp32 specifications");
}

void add_training(CLI::App* command, spec::Training& training, const char* of_backward) {
  const auto flag = [&](const char* name, spec::Training asked, const char* what) {
    return command->add_flag_callback(
        name, [&training, asked] { training = asked; }, what);
  };
  CLI::Option* backward = flag("--backward", spec::Training::backward, of_backward);
  flag("--save-for-backward", spec::Training::forward,
       "of the function, and of what its gradients take: the output before it is rounded, and lse")
      ->excludes(backward);
}

void add_target(CLI::App* command, std::string& target) {
  command->add_option("--target", target, "GPU architecture: " + target_names())
      ->capture_default_str();
}

void add_check(CLI::App& app, Result& result) {
  struct State {
    std::string program;
    SpecOptions spec;
    Output output;
    check::Options options;
    std::string page;
    int cases = 0;
    check::Effort effort = check::Effort::usual;
    bool require_proof = false;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand(
      "check",
      "Run a TL program on the CPU against a specification; exit 1 with the smallest "
      "counterexample when it means something else");
  command->add_option("program", state->program, "PROGRAM.tl")->required();
  state->spec.add_to(command, false);
  CLI::Option* cases =
      command->add_option("--cases", state->cases, "at most so many of the values reading")
          ->check(CLI::Range(1, 1'000'000));
  add_effort(command, state->effort);
  add_require(command, state->require_proof);
  command->add_option("--report", state->page,
                      "FILE.html: what is wrong or undecided, on a page; none where it holds");
  add_output(command, state->output, "file for the report");
  command->callback([state, cases, &result] {
    Diagnostics d;
    if (!driver::may_certify(d)) {
      result = finish(Exit::inconclusive, d, state->output);
      return;
    }
    state->options = check::options_for(state->effort);
    state->options.require_proof = state->require_proof;
    if (*cases) state->options.cases = state->cases;
    const TemporaryFolder scratch;
    spec::CaptureRequest& request = state->spec.request;
    if (!fs::is_directory(request.spec) && !scratch.path().empty())
      request.out = scratch.path() / "captured";
    const auto [program, capture] = open(state->program, request, d);
    if (!capture) {
      result = finish(driver::exit_for(d), d, state->output);
      return;
    }
    const check::Report report = check::check(*program, *capture, state->options);
    if (const std::string doubt = driver::cpu_doubt(); !doubt.empty())
      std::cerr << "note: " << doubt << "\n";
    give(state->output, state->output.json ? check::to_json(report).dump(1) : check::print(report),
         d);
    const Exit exit = report.verdict == check::Verdict::holds          ? Exit::holds
                      : report.verdict == check::Verdict::refuted      ? Exit::refuted
                      : report.verdict == check::Verdict::inconclusive ? Exit::inconclusive
                                                                       : Exit::bad_input;
    if (!state->page.empty() && (exit == Exit::refuted || exit == Exit::inconclusive))
      driver::write_refusal_page(
          {*capture, request.out.empty() ? request.spec : request.out.string(), *program, report},
          state->page, d);
    else if (std::error_code failed; !state->page.empty())
      fs::remove(state->page, failed);  // of an earlier check
    result = finish(exit, d, state->output);
  });
}

// --to cute needs no expert's text: the whole program is spelled.
static void add_cute(CLI::App* command, CLI::Option* reference, std::string& to,
                     std::string& target) {
  CLI::Option* option = command->add_option(
      "--to", to, "cute: spell the whole program in CuTe instead (docs/cute.md)");
  option->check(CLI::IsMember({"cute"}))->excludes(reference);
  command->add_option("--target", target, "GPU architecture of --to")
      ->capture_default_str()
      ->needs(option);
}

void add_lower(CLI::App& app, Result& result) {
  struct State {
    std::string program, reference, patch, to, target = "sm_80";
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command =
      app.add_subcommand("lower",
                         "Write a TL program's change into the expert's CUDA text, or the "
                         "program as a CUDA file of its own");
  command->add_option("program", state->program, "PROGRAM.tl, or - for standard input")->required();
  CLI::Option* reference =
      command->add_option("--reference", state->reference, "the expert's KERNEL.cu");
  command->add_option("--patch", state->patch, "also write the change as a patch for git apply")
      ->needs(reference);
  add_cute(command, reference, state->to, state->target);
  add_output(command, state->output, "the .cu file to write");
  command->callback([state, &result] {
    Diagnostics d;
    const auto tools = driver::find_tools(d);
    const auto program = read_program(state->program, d);
    if (!state->to.empty()) {
      const auto text = program ? cute::print_cute(*program, state->target, d) : std::nullopt;
      const bool good = text && give(state->output, *text, d);
      result = finish(good ? Exit::holds : driver::exit_for(d), d, state->output);
      return;
    }
    const bool alone = state->reference.empty();
    const SourcePtr reference = alone ? nullptr : read_input(state->reference, d);
    std::optional<lower::Lowered> lowered;
    if (tools && program && alone) lowered = lower::lower_alone(*program, tools->clang, d);
    if (tools && program && reference) lowered = lower::lower(*program, reference, tools->clang, d);
    bool good = lowered && give(state->output, lowered->text, d);
    if (good && !state->patch.empty())
      good = give({state->patch, false}, lowered->changes.patch, d);
    if (good && !alone) say_changes(*lowered, state->output);
    result = finish(good ? Exit::holds : driver::exit_for(d), d, state->output);
  });
}

}  // namespace kw::cli
