#include "driver/tune/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "compile/elf.h"
#include "driver/environment/tiles.h"
#include "driver/environment/tools.h"
#include "driver/make/out_folder.h"
#include "driver/proof/proof.h"
#include "driver/tune/candidates.h"
#include "driver/tune/result.h"
#include "driver/tune/shape.h"
#include "lower/lower.h"
#include "support/files.h"
#include "support/process.h"
#include "tl/laws/laws.h"
#include "transfer/families/attention/facts.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

bool lacks_registers(const std::string& code) {
  return code == "build.spill" || code == "build.performance_loss";
}

// What a kernel's machine code is, without what names the compilation: two constants that make the
// same code are one candidate.
std::string fingerprint_of(const std::string& cubin, const Json& launch) {
  std::string why, all = launch.dump();
  if (const auto elf = runtime::read_elf(cubin, why))
    for (const runtime::ElfSection& s : elf->sections)
      if (s.name.starts_with(".text") || s.name.starts_with(".nv.constant"))
        all += fmt::format("{} {}\n", s.name, s.bytes);
  return sha256(all);
}

class Tuner {
 public:
  Tuner(const TuneOptions& options, const Say& say, Diagnostics& diagnostics)
      : options_(options), say_(say), diagnostics_(diagnostics) {}

  Exit run() {
    if (!find() || !capture() || !lift() || !present()) return exit_for(diagnostics_);
    enumerate();
    compile();
    if (picked_.empty()) return refuse_all();
    return write() ? Exit::holds : exit_for(diagnostics_);
  }
  const fs::path& folder() const { return folder_; }

 private:
  // A candidate under its number in the order of trying; the present one is "now".
  struct Picked {
    Candidate candidate;
    std::string work;  // its folder while it is compiled
    bool present = false;
  };

  void say(const std::string& stage, const std::string& text) { say_(stage, text, clock_.lap()); }

  bool find() {
    tools_ = find_tools(diagnostics_);
    if (!tools_) return false;
    const auto file = corpus_kernel(tools_->home, options_.target, diagnostics_);
    if (!file) return false;
    expert_ = make_source(fs::relative(*file, tools_->home.root).string(),
                          read_source(file->string())->text);
    const fs::path space = file->parent_path() / "space.json";
    const SourcePtr text = read_source(space.string());
    if (!text) {
      diagnostics_.error("tune.space", {},
                         fmt::format("there is no {}, which says which constants of this kernel "
                                     "vary",
                                     fs::relative(space, tools_->home.root).string()));
      return false;
    }
    space_ = read_space(make_source(fs::relative(space, tools_->home.root).string(), text->text),
                        diagnostics_);
    // The user's database need not be there yet: the winner is written to it.
    const bool there = !options_.tiles.empty() && fs::exists(options_.tiles);
    tiles_ = find_tiles(tools_->home, there ? options_.tiles : "", diagnostics_);
    return space_ && tiles_;
  }

  bool capture() {
    capture_ =
        open_spec(*tools_, {options_.spec, options_.function, options_.dtype, {}}, diagnostics_);
    if (!capture_) return false;
    const auto given = parse_shape(options_.shape, diagnostics_);
    if (!given) return false;
    shape_ = with_usual(capture_->form, *given);
    folder_ = out_folder(options_.out, fs::path("out") / (capture_->form.name + ".tune"));
    if (!may_replace(folder_, "tune.json", "tune", diagnostics_)) return false;
    staged_.emplace(folder_);
    say("capture", summary(capture_->form));
    return true;
  }

  bool lift() {
    source_ = lift::lift(expert_, tools_->clang, diagnostics_);
    return source_ && tl::verify(*source_, diagnostics_);
  }

  // What `make` would use now: the first row that compiles. A head dimension without any is no
  // fault here, as long as the constants can be found.
  bool present() {
    for (int tried = 0;; ++tried) {
      Diagnostics why;
      auto changed =
          transfer::transfer(*source_, capture_->form, {options_.target, *tiles_, tried}, why);
      if (!changed) {
        if (!capture_->form.D.name.empty() || why.all().at(0).code != "transfer.head_dim")
          return pass_on(why);
        say("present", "no tiles for this head dimension yet");
        return true;
      }
      if (!tl::verify(changed->program, why)) return pass_on(why);
      auto plan = lower::plan_launch(changed->program, options_.target, why);
      if (!plan) return pass_on(why);
      for (const transfer::Condition& c : changed->conditions)
        plan->requirements.push_back(c.holds);
      const bool roomier = changed->roomier;
      now_ = Candidate{constants_of(changed->program), std::move(*changed), std::move(*plan)};
      const Outcome outcome = compile_one(*now_, "now");
      if (outcome.code.empty()) {
        now_fingerprint_ = outcome.fingerprint;
        say("present", fmt::format("{}: {}",
                                   now_->transferred.tiles.empty() ? "the text's own constants"
                                                                   : now_->transferred.tiles,
                                   text_of(now_->constants)));
        return true;
      }
      now_.reset();
      if (roomier && lacks_registers(outcome.code)) continue;
      say("present", fmt::format("what make would use does not compile: {}", outcome.code));
      return true;
    }
  }

  bool pass_on(const Diagnostics& why) {
    for (const Diagnostic& d : why.all()) diagnostics_.add(d);
    return false;
  }

  // The values that a program has for the constants of the space.
  Setting constants_of(const tl::Program& program) const {
    Setting out;
    const auto add = [&](const Axis& axis) {
      for (const transfer::Constant& c : axis.at(0)) {
        const tl::Item* d = transfer::constant_named(program, c.name);
        if (!d || !d->expr) continue;
        if (d->expr->kind == tl::ExprKind::integer)
          out.push_back({c.name, int64_t{std::stoll(d->expr->text)}});
        else
          out.push_back({c.name, d->expr->is_name("true")});
      }
    };
    for (const Axis& axis : space_->axes) add(axis);
    for (const Axis& axis : space_->first) add(axis);
    return out;
  }

  void enumerate() {
    found_ = lawful_candidates(*source_, capture_->form, options_.target, *space_);
    const std::string text = told(found_);
    if (now_)
      std::erase_if(found_.lawful, [&](const Candidate& c) {
        return tl::equal(c.transferred.program, now_->transferred.program);
      });
    say("space", text);
    for (const auto& [code, times] : found_.refused)
      if (const tl::Law* law = tl::law(code)) say_("", fmt::format("{}: {}", code, law->text), 0);
  }

  // Lowers and compiles into a folder of the staging area. A process does the compiling: NVRTC
  // holds a lock for most of its time, and a compiler that crashes takes nothing with it.
  Outcome compile_one(const Candidate& candidate, const std::string& name) {
    const fs::path at = staged_->path() / "work" / name;
    Diagnostics why;
    {
      const std::lock_guard lock(lowering_);
      const auto lowered = lower::lower(candidate.transferred.program, expert_, tools_->clang, why);
      if (!lowered) return {why.all().at(0).code, "", why.all()[0].message};
      fs::create_directories(at);
      if (!write_file(at / "kernel.cu", lowered->text) ||
          !write_file(at / "launch.json", to_json(candidate.plan).dump(1)))
        return {"tune.write", "", "cannot write " + at.string()};
    }
    const ProcessResult built =
        run_process({beside("kernelwright"), "build", (at / "kernel.cu").string(), "--target",
                     options_.target, "--out", (at / "kernel.cubin").string(), "--json"},
                    {}, 300);
    if (built.exit_code != 0) {
      const Json said = Json::parse(built.err, nullptr, false);
      const bool told = said.is_object() && said.contains("diagnostics");
      for (const Json& d : told ? said["diagnostics"] : Json::array())
        if (d["severity"] == "error") return {d["code"], "", d["message"]};
      return {"internal.build", "", built.err};
    }
    const SourcePtr cubin = read_source((at / "kernel.cubin").string());
    return {"", cubin ? fingerprint_of(cubin->text, to_json(candidate.plan)) : "", ""};
  }

  void compile() {
    const auto name = [](size_t n) { return fmt::format("{}", n); };
    kept_ = first_good(found_.lawful.size(), static_cast<size_t>(options_.keep), options_.jobs,
                       [&](size_t n) -> Outcome {
                         Outcome outcome = compile_one(found_.lawful[n], name(n));
                         if (outcome.code.empty() && outcome.fingerprint == now_fingerprint_)
                           outcome = {"same", "", "the machine code of what is used now"};
                         return outcome;
                       });
    if (now_) picked_.push_back({*now_, "now", true});
    for (const size_t n : kept_.indices) picked_.push_back({found_.lawful[n], name(n), false});
    std::string text = fmt::format("{} compiled", kept_.compiled);
    for (const auto& [code, times] : kept_.refused)
      text += code == "same" ? fmt::format(", {} are another one's machine code", times)
                             : fmt::format(", {} refused by {}", times, code);
    say("build",
        fmt::format("{}; the {} first of the model's order stay", text, kept_.indices.size()));
    for (const auto& [code, message] : kept_.messages)
      if (!lacks_registers(code)) say_("", code + ": " + message, 0);
  }

  Exit refuse_all() {
    pass_on(found_.example);
    diagnostics_.error("tune.none", {},
                       "no candidate is left: the laws, the budgets or the compiler refuse all");
    return Exit::bad_input;
  }

  bool write() {
    TuneFacts facts{options_.spec,
                    options_.target,
                    std::string(kw::name(capture_->form.dtype)),
                    capture_->form.D.constant,
                    capture_->form.Dv.constant,
                    picked_[0].candidate.transferred.keys,
                    {},
                    {}};
    std::error_code failed;
    for (size_t n = 0; n < picked_.size(); ++n) {
      const std::string name = fmt::format("{:02}", n);
      const fs::path to = staged_->path() / "candidates" / name;
      fs::create_directories(to.parent_path());
      fs::rename(staged_->path() / "work" / picked_[n].work, to, failed);
      facts.candidates.push_back(
          {name, text_of(picked_[n].candidate.constants), picked_[n].present});
      facts.constants.push_back(picked_[n].candidate.constants);
    }
    fs::remove_all(staged_->path() / "work");
    if (!write_tuning_cases(staged_->path(), *capture_, picked_[0].candidate.transferred, shape_,
                            diagnostics_))
      return false;
    if (failed || !write_tune_facts(staged_->path(), facts) || !staged_->commit()) {
      diagnostics_.error("driver.write", {}, fmt::format("cannot write {}", folder_.string()));
      return false;
    }
    say("wrote", fmt::format("{}: {} candidates, compiled; their values are not checked yet",
                             folder_.string(), picked_.size()));
    return true;
  }

  const TuneOptions& options_;
  const Say& say_;
  Diagnostics& diagnostics_;
  StageClock clock_;
  std::optional<Tools> tools_;
  SourcePtr expert_;
  std::optional<Space> space_;
  std::optional<std::vector<transfer::Tiles>> tiles_;
  std::optional<spec::Capture> capture_;
  std::map<std::string, int64_t> shape_;
  fs::path folder_;
  std::optional<StagedFolder> staged_;
  std::optional<tl::Program> source_;
  std::optional<Candidate> now_;
  std::string now_fingerprint_;
  Candidates found_;
  Kept kept_;
  std::vector<Picked> picked_;
  std::mutex lowering_;
};

// The second half on this machine, if it has a GPU; nothing when it has none.
std::optional<Exit> time_here(const fs::path& folder, const Say& say) {
  StageClock clock;
  const ProcessResult run =
      run_process({beside("kernelwright-tune-time"), folder.string()}, {}, 3600);
  if (run.exit_code == static_cast<int>(Exit::inconclusive)) return std::nullopt;
  say("time", run.out + run.err, clock.lap());
  return static_cast<Exit>(run.exit_code);
}

Exit conclude(const fs::path& folder, const TuneOptions& options, const Say& say,
              Diagnostics& diagnostics) {
  const auto facts = read_tune_facts(folder, diagnostics);
  const std::string file = options.times.empty() ? (folder / "times.json").string() : options.times;
  const SourcePtr source = read_source(file);
  if (!source)
    diagnostics.error("tune.times", {}, fmt::format("cannot read '{}'", file)).hint =
        "on a machine with a GPU: kernelwright-tune-time " + folder.string();
  const auto times = source ? runtime::read_tune_times(source, diagnostics) : std::nullopt;
  if (!facts || !times) return Exit::bad_input;
  const auto choice = runtime::choose(facts->candidates, *times);
  if (!choice) {
    diagnostics.error("tune.none", {}, "no candidate was right on the GPU; see " + file);
    return Exit::refuted;
  }
  say("chosen", runtime::sentence(*choice), 0);
  if (choice->keeps_present) {
    say("", "the tile database stays as it is", 0);
    return Exit::holds;
  }
  const std::string tiles =
      options.tiles.empty() ? (folder / "tiles.json").string() : options.tiles;
  if (!merge_into(tiles, row_of(*facts, *times, *choice), diagnostics)) return Exit::bad_input;
  say("wrote",
      fmt::format("{}; `kernelwright make {} --target {} --tiles {}` checks its values and makes "
                  "the kernel",
                  tiles, facts->spec, facts->target, tiles),
      0);
  return Exit::holds;
}

}  // namespace

Exit tune(const TuneOptions& options, const Say& say, Diagnostics& diagnostics) {
  fs::path folder = options.spec;
  const bool earlier = fs::exists(folder / "tune.json");
  if (!earlier) {
    Tuner tuner(options, say, diagnostics);
    const Exit exit = tuner.run();
    if (exit != Exit::holds) return exit;
    folder = tuner.folder();
  }
  if (!earlier || (options.times.empty() && !fs::exists(folder / "times.json"))) {
    const auto timed = time_here(folder, say);
    if (!timed) {
      say("",
          fmt::format("no GPU here; on a machine with one: kernelwright-tune-time {0}, and then "
                      "`kernelwright tune {0}` again",
                      folder.string()),
          0);
      return Exit::holds;
    }
    if (*timed != Exit::holds && *timed != Exit::refuted) return *timed;
  }
  return conclude(folder, options, say, diagnostics);
}

}  // namespace kw::driver
