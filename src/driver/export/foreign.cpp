#include "driver/export/foreign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "driver/environment/home.h"
#include "driver/environment/proposer.h"
#include "driver/environment/tools.h"
#include "driver/proof/proof.h"
#include "foreign/lifting.h"
#include "foreign/lowering.h"
#include "models/providers/provider_error.h"
#include "propose/bindings.h"
#include "support/files.h"
#include "support/process.h"
#include "tl/laws/laws.h"
#include "transfer/transfer.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

SourcePtr read_needed(const fs::path& path, const char* what, Diagnostics& diagnostics) {
  const SourcePtr file = read_source(path.string());
  if (!file)
    diagnostics.error("foreign.read", {}, fmt::format("cannot read '{}', {}", path.string(), what));
  return file;
}

// Why nobody answered, or what was wrong with the answers.
ForeignEnd ended(const foreign::Asker& asker, const std::string& kept, Diagnostics& diagnostics) {
  ForeignEnd end;
  end.exit = Exit::inconclusive;
  const std::string refused = asker.count_refusals();
  if (const auto& problem = asker.problem()) {
    diagnostics.error(std::string("model.") + models::name(problem->kind), {}, problem->what());
    end.exit = models::exit_of(problem->kind);
  }
  end.said = fmt::format("{}{}{}", refused, refused.empty() || kept.empty() ? "" : "; ", kept);
  return end;
}

struct Opened {
  Tools tools;
  foreign::Description description;
  foreign::Sources sources;
  spec::Capture capture;
};

std::optional<Opened> open(const ForeignOptions& options, const SourcePtr& description,
                           Diagnostics& diagnostics) {
  auto tools = find_tools(diagnostics);
  if (!tools || !description) return std::nullopt;
  auto read = foreign::read_description(description, diagnostics);
  if (read && !options.target.empty()) read->launch["target"] = read->target = options.target;
  if (!read || !known_target(read->target, diagnostics)) return std::nullopt;
  auto sources = foreign::read_sources(*read, options.sources, diagnostics);
  if (!sources) return std::nullopt;
  auto capture = open_spec(*tools, options.spec, diagnostics);
  if (!capture) return std::nullopt;
  return Opened{std::move(*tools), std::move(*read), std::move(*sources), std::move(*capture)};
}

bool write_lowered(const fs::path& folder, const foreign::Lowered& lowered,
                   const spec::Capture& capture, const transfer::Result& transferred,
                   Diagnostics& diagnostics) {
  const bool written = write_file(folder / "kernel.cubin", lowered.built.cubin) &&
                       write_file(folder / "launch.json", lowered.launch.dump(1) + "\n") &&
                       write_proof(folder, capture, transferred, diagnostics);
  if (!written && !diagnostics.has_errors())
    diagnostics.error("driver.write", {}, fmt::format("cannot write into {}", folder.string()));
  return written;
}

// The GPU's word on each answer. A refutation goes back to who answered, in the prover's words
// without this machine's paths; without a GPU or its self-test there is no word.
class Prover {
 public:
  Prover(const spec::Capture& capture, const transfer::Result& transferred,
         Diagnostics& diagnostics)
      : capture_(capture), transferred_(transferred), diagnostics_(diagnostics) {}

  foreign::Complaint operator()(const foreign::Lowered& lowered) {
    const TemporaryFolder scratch;
    if (!write_lowered(scratch.path(), lowered, capture_, transferred_, diagnostics_)) return {};
    const ProcessResult run =
        run_process({beside("kernelwright-prove"), scratch.path().string()}, {}, 600);
    exit = run.exit_code == 0   ? Exit::holds
           : run.exit_code == 1 ? Exit::refuted
                                : Exit::inconclusive;
    said = run.out + run.err;
    for (size_t at; (at = said.find(scratch.path().string())) != said.npos;)
      said.replace(at, scratch.path().string().size(), "OUT");
    if (exit != Exit::refuted) return {};
    return {{"lower.probe", "it compiles, and a GPU finds that it does not compute the function"},
            said};
  }

  Exit exit = Exit::inconclusive;  // of the last answer
  std::string said;

 private:
  const spec::Capture& capture_;
  const transfer::Result& transferred_;
  Diagnostics& diagnostics_;
};

std::string lines(const foreign::Lift& lift) {
  const auto missing = lift.missing();
  return fmt::format("{} notes, {} regions ({} missing), {} parts, {} left out", lift.notes.size(),
                     lift.regions.size(), missing.size(), lift.parts.size(), lift.left_out.size());
}

}  // namespace

ForeignEnd lift_foreign(const ForeignOptions& options, models::Provider& provider,
                        Diagnostics& diagnostics) {
  const SourcePtr text =
      read_needed(options.kernel, "the description of a foreign kernel", diagnostics);
  const auto opened = open(options, text, diagnostics);
  foreign::LiftPrompts prompts;
  if (!opened || !read_prompts(opened->tools.home,
                               {{&prompts.system, "foreign.lift.system.md"},
                                {&prompts.notes, "foreign.notes.user.md"},
                                {&prompts.regions, "foreign.regions.user.md"},
                                {&prompts.parts, "foreign.parts.user.md"}},
                               diagnostics))
    return {exit_for(diagnostics), "", ""};
  const fs::path folder = options.out;
  std::error_code failed;
  fs::create_directories(folder, failed);
  foreign::Lift lift;
  if (const SourcePtr earlier = read_source((folder / "lift.json").string())) {
    const auto read = foreign::read_lift(earlier, diagnostics);
    if (!read) return {Exit::bad_input, "", ""};
    lift = *read;
    if (lift.description != opened->description.sha256) {
      diagnostics
          .error("foreign.lift", {},
                 fmt::format("'{}' holds the lift of another description", folder.string()))
          .hint = "name another folder with --out, or remove it to begin again";
      return {Exit::bad_input, "", ""};
    }
  }
  lift.description = opened->description.sha256;
  bool written = true;
  const auto save = [&] {
    written = written && write_file(folder / "kernel.json", text->text) &&
              write_file(folder / "lift.json", foreign::to_json(lift).dump(1) + "\n") &&
              write_file(folder / "kernel.tl", lift.program());
  };
  foreign::Asker asker(provider, options.attempts, options.answer_tokens);
  const foreign::Lifted lifted = foreign::lift_on(
      {opened->description, opened->sources, opened->capture, prompts, options.effort}, lift, asker,
      save, diagnostics);
  if (!written) {
    diagnostics.error("driver.write", {}, fmt::format("cannot write into {}", folder.string()));
    return {Exit::bad_input, "", ""};
  }
  if (!lifted.holds) {
    ForeignEnd end =
        ended(asker, fmt::format("kept {}: {}", (folder / "lift.json").string(), lines(lift)),
              diagnostics);
    if (lifted.report.counterexample) end.explanation = check::print(lifted.report);
    return end;
  }
  const std::string refused = asker.count_refusals();
  return {Exit::holds,
          fmt::format("{}: {}; answered: {}{}{}\n{}", opened->description.name, lines(lift),
                      fmt::join(lift.who, ", "), refused.empty() ? "" : "; ", refused,
                      check::print(lifted.report)),
          ""};
}

ForeignEnd lower_foreign(const ForeignOptions& options, models::Provider& provider,
                         Diagnostics& diagnostics) {
  const fs::path from = options.kernel, folder = options.out;
  const SourcePtr text =
      read_needed(from / "kernel.json", "which `foreign lift` wrote", diagnostics);
  const SourcePtr lifted =
      read_needed(from / "lift.json", "which `foreign lift` wrote", diagnostics);
  const auto opened = open(options, text, diagnostics);
  const auto lift = lifted ? foreign::read_lift(lifted, diagnostics) : std::nullopt;
  foreign::LowerPrompts prompts;
  if (!opened || !lift ||
      !read_prompts(
          opened->tools.home,
          {{&prompts.system, "foreign.lower.system.md"}, {&prompts.user, "foreign.lower.user.md"}},
          diagnostics))
    return {exit_for(diagnostics), "", ""};
  if (lift->description != opened->description.sha256) {
    diagnostics
        .error("foreign.lift", {},
               fmt::format("'{}' is the lift of another kernel.json than the one beside it",
                           (from / "lift.json").string()))
        .hint = "lift again into another folder";
    return {Exit::bad_input, "", ""};
  }
  foreign::Complaint partial;
  const auto source = foreign::program_of(*lift, partial);
  if (!source || lift->verdict != "holds") {
    diagnostics
        .error("foreign.lift", {},
               fmt::format("the lift is not complete: {}",
                           source ? "its program was not found to hold" : partial.refusal.sentence))
        .hint = "go on with `kernelwright foreign lift` into the same folder";
    return {Exit::bad_input, "", ""};
  }
  const SourcePtr program = read_needed(options.program, "the changed program", diagnostics);
  std::optional<tl::Program> target;
  if (program) target = tl::parse(program, diagnostics);
  if (!target || !tl::verify(*target, diagnostics)) return {exit_for(diagnostics), "", ""};
  auto transferred = transfer::begin(*source, opened->capture.form,
                                     {opened->description.target, {}, 0, true}, diagnostics);
  if (!transferred) return {exit_for(diagnostics), "", ""};
  transferred->program = *target;
  foreign::Refusal refusal;
  if (!propose::bind_arguments(*transferred, *source, opened->capture.form, refusal)) {
    diagnostics.error(refusal.code, {}, refusal.sentence);
    return {Exit::bad_input, "", ""};
  }
  // No word of a model goes into a file of the user's for a program that is wrong.
  const check::Report report =
      check::check(*target, opened->capture, check::options_for(options.effort));
  if (report.verdict != check::Verdict::holds)
    return {report.verdict == check::Verdict::refuted ? Exit::refuted : Exit::inconclusive, "",
            check::print(report)};
  foreign::Asker asker(provider, options.attempts, options.answer_tokens);
  Prover prover(opened->capture, *transferred, diagnostics);
  std::function<foreign::Complaint(const foreign::Lowered&)> prove;
  if (options.gpu) prove = std::ref(prover);
  const foreign::Lowering lowering =
      foreign::lower({opened->description, opened->sources, *lift, *source, *target,
                      (site_packages(opened->tools.python) / "torch").string(), prompts, prove},
                     asker, diagnostics);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (!lowering.done) {
    if (diagnostics.has_errors() && !asker.problem()) return {exit_for(diagnostics), "", ""};
    std::string kept;
    if (!lowering.best.patch.empty() && write_file(folder / "best.patch", lowering.best.patch))
      kept = fmt::format("kept {}", (folder / "best.patch").string());
    ForeignEnd end = ended(asker, kept, diagnostics);
    end.explanation = lowering.best.built.said + prover.said;
    return end;
  }
  const foreign::Lowered& done = *lowering.done;
  const bool written = write_file(folder / "kernel.patch", done.patch) &&
                       write_file(folder / "kernel.tl", tl::print(*target)) &&
                       write_lowered(folder, done, opened->capture, *transferred, diagnostics);
  if (!written) {
    if (!diagnostics.has_errors())
      diagnostics.error("driver.write", {}, fmt::format("cannot write into {}", folder.string()));
    return {exit_for(diagnostics), "", ""};
  }
  // Sources that nobody changed were not held against a GPU yet.
  if (options.gpu && prover.said.empty()) prover(done);
  if (diagnostics.has_errors()) return {exit_for(diagnostics), "", ""};
  const std::string proof =
      prover.exit == Exit::holds
          ? fmt::format("proven:\n{}", prover.said)
          : fmt::format(
                "{}not proven: no lens stands over a foreign text, so what it computes is "
                "shown on a GPU alone: kernelwright-prove {}\n",
                prover.said, folder.string());
  const std::string refused = asker.count_refusals();
  return {prover.exit,
          fmt::format("-{} +{} lines in {} files; answered: {}{}{}\n{}{}apply: git -C {} apply {}",
                      done.removed, done.added, done.files.size(), fmt::join(asker.who(), ", "),
                      refused.empty() ? "" : "; ", refused, done.built.said, proof, options.sources,
                      fs::absolute(folder / "kernel.patch").string()),
          ""};
}

}  // namespace kw::driver
