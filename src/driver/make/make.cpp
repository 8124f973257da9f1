#include "driver/make/make.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <future>
#include <nlohmann/json.hpp>

#include "check/check.h"
#include "check/unseen.h"
#include "driver/certificate/certificate.h"
#include "driver/certificate/certify.h"
#include "driver/environment/proposer.h"
#include "driver/environment/tiles.h"
#include "driver/family.h"
#include "driver/make/failure.h"
#include "driver/make/out_folder.h"
#include "driver/make/report.h"
#include "driver/make/target_types.h"
#include "driver/proof/proof.h"
#include "driver/self_test/cpu_self_test.h"
#include "driver/start/by_rules.h"
#include "driver/start/from_sketch.h"
#include "driver/start/port.h"
#include "driver/start/rebase.h"
#include "driver/training/training.h"
#include "lower/launch_plan.h"
#include "lower/lower.h"
#include "report/page.h"
#include "support/files.h"
#include "support/targets.h"
#include "tl/laws/laws.h"
#include "transfer/transfer.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

bool lacks_registers(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all())
    if (d.code == "build.spill" || d.code == "build.performance_loss") return true;
  return false;
}

std::string first_message(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all())
    if (d.severity == Severity::error) return d.message;
  return "no reason is known";
}

class Maker {
 public:
  Maker(const MakeOptions& options, const Say& say, Diagnostics& diagnostics)
      : options_(options), say_(say), diagnostics_(diagnostics) {}

  Made run() {
    // One stage after another; each returns false once it has said why.
    const bool done =
        find() && capture() && draw() && lift() && fit() && write() && (!options_.gpu || prove());
    if (!done && made_.exit == Exit::own_fault) made_.exit = exit_for(diagnostics_);
    return std::move(made_);
  }

 private:
  void say(const std::string& stage, const std::string& text) {
    if (later_)
      later_->push_back({stage, text, clock_.lap()});
    else
      say_(stage, text, clock_.lap());
  }

  const Family& family() const { return Family::of(capture_->form); }

  bool find() {
    if (!may_certify(diagnostics_)) {
      made_.exit = Exit::inconclusive;
      return false;
    }
    if (!name_fits(options_.out)) return false;
    tools_ = find_tools(diagnostics_);
    if (!tools_) return false;
    // A target that nobody knows is find_expert's to refuse.
    sketched_ = options_.from_sketch || (options_.kernel.empty() && find_target(options_.target) &&
                                         !has_expert(*tools_, options_.target));
    if (!sketched_) expert_ = find_expert(*tools_, options_.kernel, options_.target, diagnostics_);
    if (!sketched_ && !expert_) return false;
    tiles_ = find_tiles(tools_->home, options_.tiles, diagnostics_);
    return tiles_.has_value();
  }

  bool capture() {
    captured_ = options_.spec;  // a folder that capture wrote, or a file to capture
    if (!fs::is_directory(captured_)) {
      captured_ = scratch_.path() / "capture";
      capture_ = driver::capture(
          *tools_,
          {options_.spec, options_.function, options_.dtype, captured_, {}, options_.training},
          diagnostics_);
    } else {
      capture_ = spec::load_capture(captured_, diagnostics_);
    }
    if (!capture_ || !types_fit(capture_->form, options_.target, diagnostics_)) return false;
    if (options_.deterministic && capture_->form.training() != spec::Training::backward) {
      diagnostics_
          .error("driver.deterministic", {},
                 fmt::format(
                     "--deterministic is of gradients, and of {} the function itself is asked for",
                     capture_->form.name))
          .hint =
          "--backward makes the kernel of its gradients; all others give the same bits anyway";
      return false;
    }
    if (options_.kernel.empty() && !options_.from_sketch) {
      const auto own = own_experts(*tools_, capture_->form, options_.target, diagnostics_);
      if (own && !own->empty()) {
        expert_ = own->front();
        other_ = own->size() > 1 ? (*own)[1] : nullptr;
        sketched_ = false;
      } else if (own) {
        sketched_ = true;
        expert_ = nullptr;  // attention's
      }
      if (diagnostics_.has_errors()) return false;
    }
    graph_.text = read_source((captured_ / "graph.json").string())->text;
    target_ = out_folder(options_.out, fs::path("out") / capture_->form.name);
    if (!free_to_write()) return false;
    say("capture", summary(capture_->form));
    for (const Note& note : capture_->form.notes) say_("", text_of(note), 0);
    return true;
  }

  bool name_fits(const fs::path& folder) {
    const std::string wrong = too_long(folder);
    if (wrong.empty()) return true;
    diagnostics_.error("driver.out", {}, "cannot write the kernel: " + wrong).hint =
        "name another folder with --out";
    return false;
  }

  // What stands there is replaced, so it must be what an earlier run wrote. Asked early: a user
  // should not wait for the answer.
  bool free_to_write() {
    if (!name_fits(target_)) return false;
    if (!may_replace(target_, "certificate.json", "make", diagnostics_)) return false;
    std::error_code failed;
    fs::path above = fs::absolute(target_, failed).parent_path();  // the part of it that exists
    while (!fs::exists(above, failed) && above != above.root_path()) above = above.parent_path();
    if (fs::is_directory(above, failed) && access(above.c_str(), W_OK) == 0) return true;
    diagnostics_.error("driver.out", {},
                       fmt::format("cannot write '{}': '{}' is not a writable directory",
                                   target_.string(), above.string()));
    return false;
  }

  // Where no expert's text is there, or wanted.
  bool draw() {
    if (!sketched_) return true;
    const auto drawn = driver::from_sketch(*tools_, capture_->form, options_.target,
                                           options_.sketch, diagnostics_);
    if (!drawn) return false;
    const bool none = !options_.from_sketch && !expert_;
    expert_ = drawn->text;
    plain_ = drawn->plain;
    if (drawn->sized) std::erase_if(*tiles_, [](const transfer::Tiles& row) { return !row.users; });
    say("sketch", drawn->said);
    if (none) say_("", fmt::format("no expert's kernel is for {}", options_.target), 0);
    return true;
  }

  bool lift() {
    source_ = lift::lift(expert_, tools_->clang, diagnostics_);
    if (!source_ || !tl::verify(*source_, diagnostics_)) return false;
    if (sketched_) keep_rows_for(*source_, *tiles_);
    if (options_.kernel.empty() && !sketched_) {
      const auto own = tiles_of_text(tools_->home, expert_->name, diagnostics_);
      if (!own) return false;
      if (!own->empty()) {
        std::erase_if(*tiles_, [](const transfer::Tiles& row) { return !row.users; });
        tiles_->insert(tiles_->end(), own->begin(), own->end());
      }
    }
    if (!options_.kernel.empty() && family().asks_for_plain()) {
      if (!is_plain(*source_, diagnostics_)) return false;
      keep_rows_for(*source_, *tiles_);
    }
    if (options_.earlier)
      say_left_out(
          add_row_of(*options_.earlier, capture_->form, options_.target, *source_, *tiles_));
    say("lift", fmt::format("{}: {} statements", expert_->name, count_statements(*source_)));
    return true;
  }

  // The best tiles may leave too few registers for what the user's score or mask computes: then
  // roomier ones are next. Only what fits is checked, which takes longest, and told of as if it had
  // been lowered and built after that.
  bool fit() {
    for (int tried = 0;; ++tried) {
      attempt_ = {};
      proof_ = {};  // they end before what they read is made anew
      checked_ = {};
      std::vector<Said> lowered_and_built;
      bool fits = transfer(tried);
      if (fits) {
        begin_beside();
        later_ = &lowered_and_built;
        fits = lower() && build();
        later_ = nullptr;
      }
      const bool spills = fits ? built_->resources.spills() && !family().would_rather_spill()
                               : lacks_registers(attempt_);
      if (spills && transferred_ && transferred_->roomier) {
        say("build", fmt::format("{}: too few registers with these tiles; roomier ones next",
                                 options_.target));
        continue;
      }
      if (!fits && other_) {
        say("lower", fmt::format("{} does not fit ({}); {} next", expert_->name,
                                 first_message(attempt_), other_->name));
        expert_ = std::move(other_);
        tiles_ = find_tiles(tools_->home, options_.tiles, diagnostics_);
        if (!tiles_ || !lift()) return false;
        tried = -1;
        continue;
      }
      if (!fits && sketch_may_do()) {
        say("lower", fmt::format("{} does not fit ({}); a sketch next", expert_->name,
                                 first_message(attempt_)));
        if (!sketch_instead()) return false;
        tried = -1;
        continue;
      }
      const bool holds = fits && check();
      if (holds)
        for (const Said& s : lowered_and_built) say_(s.stage, s.text, s.seconds);
      for (const Diagnostic& d : attempt_.all()) diagnostics_.add(d);
      return holds;
    }
  }

  // Whether what refuses the corpus's texts may be theirs alone.
  bool sketch_may_do() const {
    return options_.kernel.empty() && !sketched_ && !options_.provider && !options_.earlier &&
           family().sketch_is_roomier();
  }

  bool sketch_instead() {
    sketched_ = true;
    tiles_ = find_tiles(tools_->home, options_.tiles, diagnostics_);
    return tiles_ && draw() && lift();
  }

  bool transfer(int tried) {
    if (options_.provider) return ask(tried);
    transferred_ = by_rules(*source_, capture_->form, target(tried), plain_, attempt_);
    if (!transferred_ || !tl::verify(transferred_->program, attempt_) || !is_as_asked())
      return false;
    if (!plain_) {
      say("transfer", "no rule: the masks and scores are the program's own");
      return true;
    }
    std::string rules;
    for (const transfer::AppliedRule& r : transferred_->rules)
      if (rules.find(r.name) == std::string::npos) rules += (rules.empty() ? "" : ", ") + r.name;
    say("transfer",
        fmt::format("rules: {}; -{} +{} statements", rules.empty() ? "none needed" : rules,
                    transferred_->statements_removed, transferred_->statements_added));
    for (const std::string& note : transferred_->notes) say_("", note, 0);
    return true;
  }

  bool is_as_asked() {
    if (options_.deterministic && !tl::takes_turns(transferred_->program))
      attempt_
          .error("transfer.deterministic", {},
                 "--deterministic is asked for, and CTAs of this program take no turns")
          .hint = "without it the kernel is made";
    return !attempt_.has_errors();
  }

  transfer::Target target(int tried) const {
    return {options_.target, *tiles_, tried, false, options_.deterministic};
  }

  // The same by whoever answers. What comes back has been checked: with the effort of this run, on
  // the inputs that a verdict rests on.
  bool ask(int tried) {
    transferred_.reset();
    const auto templates = find_templates(tools_->home, attempt_);
    if (!templates) return false;
    propose::Options options = options_.propose;
    options.check = check::options_for(options_.effort);
    options.check.require_proof = options_.require_proof;
    propose::Proposed asked = propose::propose({*source_, *capture_, target(tried), *templates},
                                               *options_.provider, options, attempt_);
    made_.attempts = attempts_text(asked);
    if (!asked.result) {
      if (asked.best >= 0) made_.best = asked.attempts[asked.best].program;
      if (!asked.attempts.empty()) made_.exit = exit_for(asked);
      return false;
    }
    transferred_ = std::move(asked.result);
    if (!is_as_asked()) return false;
    accepted_ = Checked{std::move(asked.report), asked.report.seconds};
    say("transfer", fmt::format("{}: {}; -{} +{} statements", transferred_->proposer,
                                propose::count_refusals(asked.attempts),
                                transferred_->statements_removed, transferred_->statements_added));
    for (const std::string& note : transferred_->notes) say_("", note, 0);
    return true;
  }

  // What needs neither the CUDA text nor the compiler runs beside them: the rows of a proof, and a
  // quick check, which takes no longer than a compilation. A longer one waits until it is known
  // that the kernel fits. Nothing is known yet of a program that somebody's edits will change.
  void begin_beside() {
    if (options_.earlier) return;
    proof_ = std::async(std::launch::async, [this] { return write_rows(); });
    if (options_.effort == check::Effort::quick && !accepted_)
      checked_ = std::async(std::launch::async, [this] { return run_check(); });
  }

  struct Checked {
    check::Report report;
    double seconds;
  };

  Checked run_check() const {
    StageClock clock;
    check::Options options = check::options_for(options_.effort);
    options.require_proof = options_.require_proof;
    check::Report report = check::check(transferred_->program, *capture_, options);
    return {std::move(report), clock.lap()};
  }

  // The rows that a GPU is held against, into a folder of their own.
  Diagnostics write_rows() const {
    Diagnostics found;
    std::error_code failed;
    fs::remove_all(rows(), failed);
    if (!fs::create_directories(rows(), failed) ||
        (!write_proof(rows(), *capture_, *transferred_, found) && !found.has_errors()))
      found.error("driver.write", {}, fmt::format("cannot write into {}", rows().string()));
    return found;
  }

  fs::path rows() const { return scratch_.path() / "rows"; }

  bool check() {
    Checked checked = accepted_          ? std::move(*accepted_)
                      : checked_.valid() ? checked_.get()
                                         : run_check();
    clock_.lap();
    report_ = std::move(checked.report);
    if (report_.verdict != check::Verdict::holds) {
      made_.explanation = check::print(report_);
      made_.exit = report_.verdict == check::Verdict::refuted        ? Exit::refuted
                   : report_.verdict == check::Verdict::inconclusive ? Exit::inconclusive
                   : options_.earlier ? Exit::bad_input  // somebody edited it
                                      : Exit::own_fault;
      if (report_.verdict != check::Verdict::invalid) say_why_not();
      return false;
    }
    const check::ExactReport& exact = report_.exact;
    // What holds for less than every launch says so before anything else.
    const bool everywhere = check::scope(report_) == check::Scope::every_launch;
    say_("check",
         fmt::format("{3}values {0}/{0} cases, {1} rows, worst {2:.2f} of the accepted error{4}",
                     report_.cases, report_.rows, report_.worst,
                     everywhere ? "" : check::headline(report_) + ": ", family().counted(report_)),
         checked.seconds);
    say_("",
         exact.ran ? fmt::format("exact {0}/{0} cases, {1} rows, a difference missed with "
                                 "probability {2}",
                                 exact.cases, exact.rows, check::print_bound(exact))
                   : "exact: not run: " + exact.not_run,
         0);
    if (report_.unseen) say_("", check::print(*report_.unseen), 0);
    if (report_.indices) {
      say_("", proofs::print(*report_.indices), 0);
      if (report_.indices->rounding) say_("", proofs::print(*report_.indices->rounding), 0);
      for (const proofs::Limit& l : report_.indices->limits)  // lowered before, and told of later
        plan_->requirements.push_back(l.holds);
    }
    say_("", report_.schedules ? exec::print(*report_.schedules) : "schedules: not run", 0);
    if (const std::string doubt = cpu_doubt(); !doubt.empty()) say_("", doubt, 0);
    return true;
  }

  // A page in the place of a kernel.
  void say_why_not() {
    const Making making{options_, expert_, *source_, *lowered_, *plan_};
    const Refusal refusal{*capture_, captured_, transferred_->program, report_, &making};
    if (const auto folder = write_refusal(refusal, target_, diagnostics_))
      say_("report", (*folder / report::kPage).string() + " shows what is wrong; no kernel", 0);
  }

  bool lower() {
    lowered_ = lower::lower(transferred_->program, expert_, tools_->clang, attempt_);
    if (!lowered_) return false;
    if (!options_.kernel.empty())
      lowered_->changes =
          lower::line_changes(name_in_patch(options_.kernel), expert_->text, lowered_->text);
    if (options_.earlier && !replay_by_hand()) return false;
    plan_ = lower::plan_launch(transferred_->program, options_.target, attempt_);
    if (!plan_) return false;
    for (const transfer::Condition& c : transferred_->conditions)
      plan_->requirements.push_back(c.holds);
    say("lower",
        fmt::format("{} of {} lines changed; lifting the result gives the checked program "
                    "back",
                    std::max(lowered_->changes.added, lowered_->changes.removed), lowered_->lines));
    return true;
  }

  // What a person changed in an earlier variant, put into what the rules wrote now.
  bool replay_by_hand() {
    Replay replay = driver::replay(*options_.earlier, expert_, lowered_->text, attempt_);
    if (!replay.text) return false;
    if (*replay.text != lowered_->text) {
      const SourcePtr text = make_source((target_ / "kernel.cu (merged)").string(), *replay.text);
      std::optional<tl::Program> program = lift::lift(text, tools_->clang, attempt_);
      if (!program || !tl::verify(*program, attempt_) ||
          !keeps_arguments(*transferred_, *program, attempt_))
        return false;
      by_rules_ = lowered_->text;
      lowered_->lifted = *program;
      transferred_->program = std::move(*program);
      lowered_->text = *replay.text;
      lowered_->changes =
          lower::line_changes(name_in_patch(options_.kernel), expert_->text, lowered_->text);
      lowered_->lines = static_cast<int>(lower::split_lines(lowered_->text).size());
    }
    say("replay", replay.said);
    return true;
  }

  void say_left_out(const std::vector<std::string>& constants) {
    if (!constants.empty())
      say_("",
           fmt::format("the new kernel has no {}, which the earlier variant set",
                       fmt::join(constants, ", ")),
           0);
  }

  bool build() {
    const SourcePtr kernel = make_source("kernel.cu", lowered_->text);
    built_ = driver::build(*tools_, kernel, options_.target, plan_->entries(),
                           plan_->parameter_bytes, attempt_);
    if (!built_) return false;
    const runtime::EntryResources& used = built_->resources;
    say("build",
        fmt::format("{}, {}: {} registers at entry, {}, {} KB shared", options_.target,
                    built_->compiler, used.registers,
                    used.spills() ? fmt::format("{} bytes spilled", used.spill_stores) : "0 spills",
                    (plan_->shared_bytes + 1023) / 1024));
    return true;
  }

  bool write() {
    const fs::path target = options_.staged.empty() ? target_ : options_.staged;
    StagedFolder folder(target);
    const fs::path from = folder.path() / "from";  // what verify starts from
    std::error_code failed;
    fs::create_directories(from, failed);
    bool written =
        write_file(from / fs::path(capture_->source->name).filename(), capture_->source->text) &&
        write_file(from / "graph.json", graph_.text) &&
        write_file(from / "expert.cu", expert_->text) &&
        (by_rules_.empty() || write_file(from / kByRules, by_rules_)) &&
        (made_.attempts.empty() || write_file(from / kAttempts, made_.attempts)) &&
        write_file(folder.path() / "kernel.cu", lowered_->text) &&
        write_file(folder.path() / "kernel.tl", tl::print(transferred_->program)) &&
        write_file(folder.path() / "kernel.patch", lowered_->changes.patch) &&
        write_file(folder.path() / "kernel.cubin", built_->cubin) &&
        write_file(folder.path() / "launch.json", to_json(*plan_).dump(1)) &&
        write_file(folder.path() / "launch.h", lower::launch_header(*plan_, capture_->form.name));
    for (const auto& [name, text] : vocabulary_files(tools_->home)) {
      fs::create_directories((folder.path() / name).parent_path(), failed);
      written = written && write_file(folder.path() / name, text);
    }
    const Diagnostics found = proof_.valid() ? proof_.get() : write_rows();
    for (const Diagnostic& d : found.all()) diagnostics_.add(d);
    if (diagnostics_.has_errors()) return false;
    fs::copy(rows(), folder.path(), fs::copy_options::recursive, failed);
    written = written && !failed && write_certificate(folder.path());
    if (!written) {
      diagnostics_.error("driver.write", {}, fmt::format("cannot write into {}", target.string()));
      return false;
    }
    if (!folder.commit()) {
      diagnostics_.error("driver.write", {}, fmt::format("cannot replace {}", target.string()));
      return false;
    }
    remove_refusals(target_);
    made_.folder = target.string();
    made_.exit = Exit::holds;
    say("wrote",
        target.string() +
            "/{kernel.cu, kernel.tl, kernel.patch, launch.h, kernel.cubin, certificate.json, "
            "report.html}");
    if (!options_.kernel.empty()) say_("", how_to_apply(options_.kernel, target_), 0);
    return true;
  }

  Start start() const {
    if (!options_.kernel.empty()) return Start::own_kernel;
    return !sketched_ ? Start::corpus : options_.sketch.empty() ? Start::sketch : Start::own_sketch;
  }

  // Last: it names every file.
  bool write_certificate(const fs::path& folder) {
    const SourcePtr expert = options_.kernel.empty()
                                 ? expert_
                                 : make_source(name_in_patch(options_.kernel), expert_->text);
    const Claim claim{*capture_, graph_, expert,  start(), *transferred_,
                      report_,   *plan_, *built_, folder,  !by_rules_.empty()};
    return write_report(*tools_, folder, certificate(*tools_, claim),
                        {&*source_, &lowered_->lifted});
  }

  bool prove() {
    std::string said;
    made_.exit = prove_here(made_.folder, 600, said, diagnostics_);
    say("prove", said);
    return true;
  }

  struct Said {
    std::string stage, text;
    double seconds;
  };

  const MakeOptions& options_;
  const Say& say_;
  std::vector<Said>* later_ = nullptr;  // where what is said waits; null: it is said at once
  Diagnostics& diagnostics_;
  Diagnostics attempt_;  // of the stages that may be gone through again
  StageClock clock_;
  Made made_;
  fs::path target_;  // the folder to write
  TemporaryFolder scratch_;
  fs::path captured_;  // what capture wrote
  CapturedGraph graph_;
  std::optional<Tools> tools_;
  SourcePtr expert_;
  SourcePtr other_;        // the text to try where this one does not fit
  bool sketched_ = false;  // the expert's text is made from a sketch
  bool plain_ = true;      // it computes plain attention, which the rules change
  std::optional<std::vector<transfer::Tiles>> tiles_;
  std::optional<spec::Capture> capture_;
  std::optional<tl::Program> source_;
  std::optional<transfer::Result> transferred_;
  check::Report report_;
  std::optional<lower::Lowered> lowered_;
  std::string by_rules_;  // what lower wrote, where a person's edits came on top; else empty
  std::optional<lower::LaunchPlan> plan_;
  std::optional<Built> built_;
  std::future<Diagnostics> proof_;  // last: they end before what they read
  std::future<Checked> checked_;
  std::optional<Checked> accepted_;  // by the check of a model's answer
};

}  // namespace

std::string summary(const spec::Form& form) { return Family::of(form).summary(form); }

Made make(const MakeOptions& options, const Say& say, Diagnostics& diagnostics) {
  const MakeOne one = [](const MakeOptions& o, const Say& s, Diagnostics& d) {
    return Maker(o, s, d).run();
  };
  if (options.training == spec::Training::backward)
    return make_training(options, one, say, diagnostics);
  return one(options, say, diagnostics);
}

}  // namespace kw::driver
