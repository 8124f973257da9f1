#include "driver/self_test/gpu_self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "driver/proof/proof.h"
#include "lower/launch_plan.h"
#include "lower/lower.h"
#include "support/edits.h"
#include "support/files.h"
#include "tl/laws/laws.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

// 64 rows a warpgroup leave registers for whatever an edit adds, and fit the smallest GPU.
transfer::Tiles roomy_tiles(const std::string& target) {
  transfer::Tiles tiles;
  tiles.targets = {target};
  tiles.dim = tiles.value_dim = 128;
  tiles.constants = {{"BN", int64_t{64}},
                     {"ROWS", int64_t{64}},
                     {"WARPGROUPS", int64_t{2}},
                     {"RESIDENT", int64_t{1}}};
  tiles.why = "the self-test";
  tiles.place = "the self-test";
  tiles.users = true;
  return tiles;
}

class Writer {
 public:
  Writer(const Tools& tools, const GpuSelfTestOptions& options,
         const std::function<void(const std::string&)>& say, Diagnostics& diagnostics)
      : tools_(tools), options_(options), say_(say), diagnostics_(diagnostics) {}

  bool write(const fs::path& target) {
    StagedFolder folder(target);
    folder_ = folder.path();
    if (!make_right_kernel() || !read_edits() || !write_kernel("right", text_)) return false;
    kernels_.push_back({{"name", "right"}, {"about", "no bug"}, {"expect", "holds"}});
    for (const auto& [edit, text] : planted_) {
      if (!options_.only.empty() && !wanted(edit.name)) continue;
      if (!write_kernel(edit.name, text)) return false;
      Json entry = {{"name", edit.name}, {"about", edit.about}, {"expect", "refuted"}};
      if (edit.head.count("from")) entry["from"] = std::stoll(edit.head.at("from"));
      kernels_.push_back(entry);
    }
    say_("probes");
    const Json list = {{"target", options_.target}, {"kernels", kernels_}};
    const bool written =
        write_self_test_cases(folder_, *capture_, *transferred_, options_.lengths, diagnostics_) &&
        write_file(folder_ / "self_test.json", list.dump(1)) && folder.commit();
    if (!written && diagnostics_.all().empty())
      diagnostics_.error("driver.write", {}, fmt::format("cannot write {}", target.string()));
    return written;
  }

 private:
  bool make_right_kernel() {
    const fs::path file = tools_.home.kernels() / "sm80" / "attention_fwd.cu";
    const SourcePtr read = read_source(file.string());
    const fs::path spec = tools_.home.root / "self_test" / "attention.py";
    capture_ = open_spec(tools_, {spec.string(), "", "", {}, {}}, diagnostics_);
    if (!capture_ || !read) return false;
    const SourcePtr expert = make_source("kernels/sm80/attention_fwd.cu", read->text);
    const auto program = lift::lift(expert, tools_.clang, diagnostics_);
    if (!program) return false;
    transferred_ = transfer::transfer(
        *program, capture_->form, {options_.target, {roomy_tiles(options_.target)}}, diagnostics_);
    if (!transferred_ || !tl::verify(transferred_->program, diagnostics_)) return false;
    const auto lowered = lower::lower(transferred_->program, expert, tools_.clang, diagnostics_);
    plan_ = lower::plan_launch(transferred_->program, options_.target, diagnostics_);
    if (lowered) text_ = lowered->text;
    return lowered && plan_;
  }

  bool wanted(const std::string& name) const {
    return std::find(options_.only.begin(), options_.only.end(), name) != options_.only.end();
  }

  // All of them, whichever are asked for: an edit that the text has outgrown is found early.
  bool read_edits() {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(tools_.home.root / "self_test"))
      if (file.path().extension() == ".edit") files.push_back(file.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const std::optional<Edit> edit = read_edit(file.string(), diagnostics_);
      const auto text = edit ? apply_edit(*edit, text_, diagnostics_) : std::nullopt;
      if (!text) return false;
      planted_.emplace_back(*edit, *text);
    }
    for (const std::string& name : options_.only)
      if (std::none_of(planted_.begin(), planted_.end(),
                       [&](const auto& p) { return p.first.name == name; }))
        diagnostics_.error("self_test.name", {}, fmt::format("there is no planted bug '{}'", name));
    return !diagnostics_.has_errors();
  }

  bool write_kernel(const std::string& name, const std::string& text) {
    Diagnostics findings;
    const auto built = build(tools_, make_source(name + ".cu", text), options_.target,
                             plan_->entries(), plan_->parameter_bytes, findings);
    if (!built) {
      for (const Diagnostic& d : findings.all()) diagnostics_.add(d);
      return false;
    }
    say_(fmt::format("{}: {} registers, {:.1f} s", name, built->resources.registers,
                     built->seconds));
    const fs::path to = folder_ / "kernels" / name;
    fs::create_directories(to);
    return write_file(to / "kernel.cubin", built->cubin) &&
           write_file(to / "launch.json", lower::to_json(*plan_).dump(1));
  }

  const Tools& tools_;
  const GpuSelfTestOptions& options_;
  const std::function<void(const std::string&)>& say_;
  Diagnostics& diagnostics_;
  fs::path folder_;
  std::optional<spec::Capture> capture_;
  std::optional<transfer::Result> transferred_;
  std::optional<lower::LaunchPlan> plan_;
  std::string text_;  // of the right kernel
  std::vector<std::pair<Edit, std::string>> planted_;
  Json kernels_ = Json::array();
};

}  // namespace

bool write_gpu_self_test(const Tools& tools, const fs::path& folder,
                         const GpuSelfTestOptions& options,
                         const std::function<void(const std::string&)>& say,
                         Diagnostics& diagnostics) {
  return Writer(tools, options, say, diagnostics).write(folder);
}

}  // namespace kw::driver
