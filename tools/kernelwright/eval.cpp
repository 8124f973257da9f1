// eval: how well a model changes kernels, directly and through TL; and how well it writes them, in
// one step, in two, and in CuTe.
#include "eval/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "driver/environment/author.h"
#include "driver/environment/proposer.h"
#include "driver/environment/tiles.h"
#include "driver/start/from_sketch.h"
#include "eval/cute.h"
#include "lift/lift.h"
#include "provider_options.h"
#include "support/targets.h"

namespace kw::cli {
namespace {

using eval::Arm;

// Whose question, of which arms, and on which target by default: that paper's own GPU, or the
// first that has all of its arms.
struct Asked {
  const char* who;
  std::vector<Arm> arms;
  const char* target;
};
const std::vector<Asked>& questions() {
  static const std::vector<Asked> all = {
      {"cubridge", {Arm::cuda, Arm::tl}, "sm_90a"},
      {"qimeng", {Arm::one_step, Arm::two_steps, Arm::cute}, "sm_80"}};
  return all;
}

struct EvalState {
  std::vector<std::string> specs, headers;
  std::string question;
  eval::Options options;
  models::Options provider;
  std::string transcript;
  check::Effort effort = check::Effort::usual;
  Output output;
};

// The question and its arms, filled in; false where the arms are of both, or of the other one.
bool choose(EvalState& state, Diagnostics& d) {
  auto& arms = state.options.arms;
  for (const Asked& q : questions()) {
    if (!state.question.empty() && q.who != state.question) continue;
    if (arms.empty() && state.question.empty() && q.arms[0] != Arm::cuda) continue;
    const auto ours = [&](Arm a) { return std::ranges::find(q.arms, a) != q.arms.end(); };
    if (!std::ranges::all_of(arms, ours)) continue;
    if (arms.empty()) arms = q.arms;
    state.question = q.who;
    if (state.options.target.empty()) state.options.target = q.target;
    return true;
  }
  d.error("eval.arm", {}, "the arms are of two questions, or not of the one that is asked").hint =
      "cubridge has cuda and tl, qimeng has one-step, two-steps and cute";
  return false;
}

// One function after the other, in the arms that `converse` holds conversations in.
using ForSpec = std::function<bool(const spec::Capture&, std::vector<eval::Measured>&)>;
bool each_spec(const EvalState& state, const driver::Tools& tools, const ForSpec& measure,
               std::vector<eval::Measured>& all, Diagnostics& d) {
  for (const std::string& spec : state.specs) {
    const auto capture = driver::open_spec(tools, {spec, "", "", "", {}}, d);
    if (!capture) return false;
    const size_t first = all.size();
    if (!measure(*capture, all)) return false;
    for (size_t n = first; n < all.size(); ++n)
      std::cerr << fmt::format("{} {}: {} of {} passed\n", all[n].spec, eval::name(all[n].arm),
                               std::ranges::count_if(all[n].samples, eval::passed),
                               all[n].samples.size());
  }
  return true;
}

// Edits of an expert's kernel. False where something was reported. Throws models::ProviderError.
bool measure_edits(const EvalState& state, const driver::Tools& tools,
                   std::vector<eval::Measured>& all, Diagnostics& d) {
  const auto templates = driver::find_templates(tools.home, d);
  const auto file = driver::corpus_kernel(tools.home, state.options.target, d);
  const auto tiles = driver::find_tiles(tools.home, "", d);
  if (!templates || !file || !tiles) return false;
  const SourcePtr expert = read_input(file->string(), d);
  propose::Templates cuda = *templates;
  const bool read = driver::read_prompts(tools.home, {{&cuda.system, "eval.cuda.system.md"}}, d);
  const auto lifted = expert && read ? lift::lift(expert, tools.clang, d) : std::nullopt;
  if (!lifted) return false;
  const auto provider = open_provider(state.provider, state.transcript);
  const transfer::Target target{state.options.target, *tiles};
  const auto measure = [&](const spec::Capture& capture, std::vector<eval::Measured>& into) {
    const eval::Task task{tools, capture, target, *templates, cuda, expert, *lifted};
    return eval::measure(
        capture.form.name,
        [&](Arm arm, eval::Watched& own, Diagnostics& said) {
          return (arm == Arm::cuda ? eval::converse_in_cuda : eval::converse_in_tl)(
              task, own, state.options, said);
        },
        *provider, state.options, into, d);
  };
  return each_spec(state, tools, measure, all, d);
}

// Kernels that nobody has written; likewise.
bool measure_writing(const EvalState& state, const driver::Tools& tools,
                     std::vector<eval::Measured>& all, Diagnostics& d) {
  const auto texts = driver::find_author_texts(tools.home, d);
  const auto gpu = driver::gpu_for(tools.home, state.options.target, d);
  const auto machine = gpu ? sketch::machine(*gpu, state.options.target, d) : std::nullopt;
  if (!texts || !machine) return false;
  const bool cute = std::ranges::find(state.options.arms, Arm::cute) != state.options.arms.end();
  if (cute && !eval::has_cute_headers(state.headers, d)) return false;
  const author::Checks checks{state.options.loop.rehearsal, state.options.loop.check};
  const auto provider = open_provider(state.provider, state.transcript);
  const auto measure = [&](const spec::Capture& capture, std::vector<eval::Measured>& into) {
    const auto site = author::make_site(capture, *machine, *texts, checks, d);
    if (!site) return false;
    const eval::Writing writing{tools, *texts, *site, state.headers};
    return eval::measure(
        capture.form.name,
        [&](Arm arm, eval::Watched& own, Diagnostics& said) {
          return eval::converse_writing(writing, arm, own, state.options, said);
        },
        *provider, state.options, into, d);
  };
  return each_spec(state, tools, measure, all, d);
}

bool measure_all(EvalState& state, std::vector<eval::Measured>& all, Diagnostics& d) {
  const bool chosen = choose(state, d) && driver::known_target(state.options.target, d);
  const auto tools = chosen ? driver::find_tools(d) : std::nullopt;
  if (!tools) return false;
  const bool edits = eval::edits(state.options.arms[0]);
  return (edits ? measure_edits : measure_writing)(state, *tools, all, d);
}

}  // namespace

void add_eval(CLI::App& app, Result& result) {
  auto state = std::make_shared<EvalState>();
  CLI::App* command = app.add_subcommand("eval",
                                         "Measure how often a model's changes of the expert's "
                                         "kernel pass, as CUDA and as TL, or what it "
                                         "writes without one; no rule helps");
  command
      ->add_option("spec", state->specs, "Python files, or folders that capture wrote: the tasks")
      ->required();
  command
      ->add_option("--question", state->question,
                   "cubridge: an expert's kernel is edited, as CUDA or as TL. qimeng: a kernel is "
                   "written, in one step, in two, or in CuTe")
      ->check(CLI::IsMember({"cubridge", "qimeng"}))
      ->option_text("cubridge|qimeng [cubridge]");
  std::map<std::string, Arm> arms;
  for (const Asked& q : questions())
    for (const Arm arm : q.arms) arms[std::string(eval::name(arm))] = arm;
  command
      ->add_option("--arm", state->options.arms,
                   "in which ways it is asked, of one question; default all of its ways")
      ->transform(CLI::Transformer(arms))
      ->option_text("cuda|tl|one-step|two-steps|cute ...");
  command->add_option("--headers", state->headers,
                      "a folder with CUTLASS's headers, or CCCL's, for cute; may be repeated");
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
  command->add_option("--target", state->options.target,
                      "GPU architecture: " + target_names() + "; default sm_90a, for qimeng sm_80");
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
