#include "driver/certificate/verify.h"

#include <fmt/format.h>

#include "driver/certificate/cubin_code.h"
#include "lower/lower.h"
#include "support/files.h"
#include "support/process.h"
#include "tl/laws/laws.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

// Why a stage did not run, in a line.
std::string first_error(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all())
    if (d.severity == Severity::error) return d.message.substr(0, d.message.find('\n'));
  return "no reason was given";
}

// Whether a machine lacks something, rather than an input being at fault.
bool lacks_a_tool(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all())
    for (const char* code : {"driver.python", "spec.no_pytorch", "build.no_nvrtc", "lift.libclang",
                             "driver.scratch", "build.nvrtc", "spec.run"})
      if (d.code == code) return true;
  return false;
}

class Verifier {
 public:
  Verifier(const Tools& tools, fs::path folder, const Claims& was, const Say& say)
      : tools_(tools), folder_(std::move(folder)), was_(Json(was)), say_(say) {
    // The kernel is read and built with the vocabulary that came with it.
    tools_.home.own_vocabulary = folder_;
    tools_.clang.include = folder_.string();
  }

  std::vector<Item> run(bool files_only) {
    if (!files()) {
      nothing_more("a file is not the one that the certificate names");
    } else if (files_only) {
      nothing_more("only files were asked for");
    } else {
      capture();
      if (read_program()) {
        lens();
        launch();
        check();
        cubin();
      }
      gpu();
      tools();
    }
    return std::move(items_);
  }

 private:
  // ---- what is said

  void add(const std::string& what, Standing standing, const std::string& detail = "",
           bool remark = false) {
    items_.push_back({what, standing, detail, remark});
    const std::string text(name(standing));
    say_(what, detail.empty() ? text : fmt::format("{}: {}", text, detail), clock_.lap());
  }
  void holds(const std::string& what) { add(what, Standing::holds); }
  // A stage that gave nothing: the machine's lack, or the input's fault, which is a change.
  void failed(const std::string& what, const Diagnostics& d) {
    if (lacks_a_tool(d))
      add(what, Standing::not_rerun, first_error(d));
    else
      add(what, Standing::changed, "was accepted, is refused: " + first_error(d));
  }
  void compare(const std::string& what, const Json& was, const Json& is) {
    const std::string differs = difference(was, is);
    add(what, differs.empty() ? Standing::holds : Standing::changed, differs);
  }
  void nothing_more(const std::string& why) { add("readings", Standing::not_rerun, why); }

  std::string text_of(const std::string& file) const {
    const SourcePtr source = read_source((folder_ / file).string());
    return source ? source->text : std::string();
  }
  SourcePtr source_of(const std::string& file) const { return make_source(file, text_of(file)); }
  // The entry of /checked with this id; null where the certificate has none.
  Json was_checked(const std::string& id) const {
    for (const Json& one : was_["checked"])
      if (one["check"] == id) return one;
    return nullptr;
  }

  // ---- the items

  bool files() {
    bool same = true;
    for (const auto& [name, hash] : was_["files"].items()) {
      const SourcePtr file = read_source((folder_ / name).string());
      const std::string is = file ? sha256(file->text) : "";
      if (hash == is) continue;
      same = false;
      const std::string had = hash;
      add("file " + name, Standing::changed,
          file ? fmt::format("was {:.12}..., is {:.12}...", had, is)
               : fmt::format("was {:.12}..., is not there", had));
    }
    if (same) holds(fmt::format("{} files", was_["files"].size()));
    return same;
  }

  void capture() {
    const Json& spec = was_["spec"];
    const fs::path file =
        folder_ / "from" / fs::path(spec["file"]["name"].get<std::string>()).filename();
    const fs::path out = scratch_.path() / "capture";
    Diagnostics d;
    capture_ = driver::capture(tools_, {file.string(), spec["function"], spec["dtype"], out}, d);
    if (!capture_) return failed("capture", d);
    graph_.text = read_source((out / "graph.json").string())->text;
    Json is(spec_facts(*capture_, graph_));
    is["file"]["name"] = spec["file"]["name"];  // it was read from another place
    compare("capture", spec, is);
  }

  bool read_program() {
    Diagnostics d;
    program_ = tl::parse(source_of("kernel.tl"), d);
    if (program_ && tl::verify(*program_, d)) return true;
    failed("program", d);
    return false;
  }

  void lens() {
    Diagnostics d;
    const auto lifted = lift::lift(source_of("kernel.cu"), tools_.clang, d);
    if (!lifted) return failed("lens", d);
    if (!tl::equal(*lifted, *program_))
      return add("lens", Standing::changed,
                 "lifting kernel.cu gave kernel.tl, gives another program");
    const SourcePtr expert = make_source(was_["expert"]["name"], text_of("from/expert.cu"));
    const bool by_hand = was_["files"].contains(std::string("from/") + kByRules);
    if (by_hand) {  // no rule gives its text: the patch is what stands for the change
      if (lower::line_changes(expert->name, expert->text, text_of("kernel.cu")).patch !=
          text_of("kernel.patch"))
        return add("lens", Standing::changed,
                   "kernel.patch was the change from from/expert.cu to kernel.cu, is another");
    } else {
      const auto lowered = lower::lower(*program_, expert, tools_.clang, d);
      if (!lowered) return failed("lens", d);
      if (lowered->text != text_of("kernel.cu") ||
          lowered->changes.patch != text_of("kernel.patch"))
        return add("lens", Standing::changed,
                   "kernel.tl written into from/expert.cu gave kernel.cu and kernel.patch, gives "
                   "another text");
    }
    compare("lens", was_checked("lens"), Json(lens_facts(count_statements(*program_), by_hand)));
  }

  void launch() {
    Diagnostics d;
    plan_ = lower::plan_launch(*program_, was_["target"], d);
    if (!plan_) return failed("launch", d);
    for (const Json& c : was_["transfer"]["conditions"])
      if (const tl::ExprPtr condition = tl::parse_expr(c["holds"], d))
        plan_->requirements.push_back(condition);
    if (const Json indices = was_checked("indices"); !indices.is_null())
      for (const Json& limit : indices["coverage"]["limits"])
        if (const tl::ExprPtr condition = tl::parse_expr(limit, d))
          plan_->requirements.push_back(condition);
    std::string why;
    const Json was(parse_claims(text_of("launch.json"), why).value_or(Claims()));
    const std::string differs = difference(was, to_json(*plan_));
    if (!differs.empty()) return add("launch", Standing::changed, "launch.json: " + differs);
    const bool header = text_of("launch.h") ==
                        lower::launch_header(*plan_, was_["spec"]["name"].get<std::string>());
    add("launch", header ? Standing::holds : Standing::changed,
        header ? "" : "launch.h was made from kernel.tl, is another text");
  }

  check::Effort effort() const {
    for (const auto e : {check::Effort::quick, check::Effort::full})
      if (was_["effort"] == check::name(e)) return e;
    return check::Effort::usual;
  }

  void check() {
    if (!capture_)
      return add("check", Standing::not_rerun, "the specification could not be captured");
    const check::Report report = check::check(*program_, *capture_, check::options_for(effort()));
    const Json was = {{"verdict", was_verdict()}, {"holds_for", was_["holds_for"]}};
    compare("verdict", was,
            {{"verdict", check::name(report.verdict)}, {"holds_for", name(scope(report))}});
    for (const Claims& one : check_facts(report)) {
      const std::string id = one["check"];
      compare(id, was_checked(id), Json(one));
    }
    if (!was_checked("indices").is_null() && (!report.indices || !report.indices->not_run.empty()))
      add("indices", Standing::changed, "was proved, is not");
    for (const char* id : {"exact", "schedules"})
      if (!was_checked(id).is_null() &&
          (std::string(id) == "exact" ? !report.exact.ran : !report.schedules))
        add(id, Standing::changed, "was run, is not");
    std::vector<std::string> not_checked = driver::not_checked(report);
    Json words = was_["not_checked"];
    if (!was_["gpu"].is_null()) {  // the sentence on GPUs is the proof's
      words.erase(0);
      not_checked.erase(not_checked.begin());
    }
    compare("not_checked", words, not_checked);
  }

  // The verdict without what a GPU said.
  Json was_verdict() const {
    const bool by_gpu = !was_["gpu"].is_null() && was_["gpu"]["verdict"] != "holds";
    return by_gpu ? Json("holds") : Json(was_["verdict"]);
  }

  void cubin() {
    if (!plan_) return add("cubin", Standing::not_rerun, "the launch could not be planned");
    Diagnostics d;
    const auto built = build(tools_, source_of("kernel.cu"), plan_->target, plan_->entries(),
                             plan_->parameter_bytes, d);
    if (!built) return failed("cubin", d);
    compiler_ = built->compiler;
    const std::string was = text_of("kernel.cubin"), by = was_["tools"]["compiler"];
    if (built->cubin != was && !same_code(built->cubin, was)) {
      if (by == compiler_)
        return add("cubin", Standing::changed,
                   fmt::format("{} gave kernel.cubin, gives other code", by));
      return add("cubin", Standing::not_rerun,
                 fmt::format("kernel.cubin was built by {}, this is {}, whose code differs", by,
                             compiler_));
    }
    compare("cubin", was_checked("cubin"), Json(cubin_facts(*plan_, *built)));
  }

  void gpu() {
    if (was_["gpu"].is_null()) return;
    Claims merged(was_);
    Diagnostics d;
    if (!add_proof(merged, text_of("gpu.json"), d)) return failed("gpu", d);
    const std::string differs = difference(was_["gpu"], Json(merged["gpu"]));
    if (!differs.empty()) return add("gpu", Standing::changed, differs);
    const ProcessResult run =
        run_process({beside("kernelwright-prove"), folder_.string()}, {}, 600);
    if (run.exit_code == static_cast<int>(Exit::inconclusive))
      return add("gpu", Standing::not_rerun, "no GPU here, or no case of it applied");
    const bool held = was_["gpu"]["verdict"] == "holds", does = run.exit_code == 0;
    add("gpu", held == does ? Standing::holds : Standing::changed,
        held == does ? ""
                     : fmt::format("was {}, kernelwright-prove ends with {}",
                                   held ? "holds" : "refuted", run.exit_code));
  }

  // Other versions are worth a line; what they do is compared above.
  void tools() {
    Json is(tool_facts(tools_, graph_, compiler_)), was = was_["tools"];
    if (compiler_.empty()) is.erase("compiler"), was.erase("compiler");
    if (graph_.text.empty())
      for (const char* field : {"python", "torch"}) is.erase(field), was.erase(field);
    const std::string differs = difference(was, is);
    add("tools", differs.empty() ? Standing::holds : Standing::changed, differs, true);
  }

  Tools tools_;
  const fs::path folder_;
  const Json was_;
  const Say& say_;
  StageClock clock_;
  TemporaryFolder scratch_;
  std::vector<Item> items_;
  std::optional<tl::Program> program_;
  std::optional<spec::Capture> capture_;
  CapturedGraph graph_;
  std::optional<lower::LaunchPlan> plan_;
  std::string compiler_;
};

Exit exit_of(const Claims& was, const std::vector<Item>& items) {
  bool unsure = false;
  for (const Item& item : items) {
    if (item.standing == Standing::changed && !item.remark) return Exit::refuted;
    unsure = unsure || item.standing == Standing::not_rerun;
  }
  if (was["verdict"] == "refuted") return Exit::refuted;
  return unsure || was["verdict"] != "holds" ? Exit::inconclusive : Exit::holds;
}

}  // namespace

std::string_view name(Standing s) {
  return s == Standing::holds     ? "still holds"
         : s == Standing::changed ? "changed"
                                  : "could not be rerun";
}

Verified verify(const VerifyOptions& options, const Say& say, Diagnostics& diagnostics) {
  Verified out;
  fs::path file = options.certificate;
  std::error_code failed;
  if (fs::is_directory(file, failed)) file /= "certificate.json";
  const SourcePtr text = fs::is_regular_file(file, failed) ? read_source(file.string()) : nullptr;
  if (!text) {
    diagnostics.error("certificate.file", {}, fmt::format("there is no file '{}'", file.string()))
        .hint = "name a certificate.json that make wrote, or its folder";
    return out;
  }
  const auto tools = find_tools(diagnostics);
  const auto schema = tools ? certificate_schema(tools->home, diagnostics) : std::nullopt;
  const auto was = schema ? read_certificate(text, *schema, diagnostics) : std::nullopt;
  if (!was) {
    out.exit = exit_for(diagnostics);
    return out;
  }
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  out.items = Verifier(*tools, folder, *was, say).run(options.files_only);
  out.exit = exit_of(*was, out.items);
  return out;
}

}  // namespace kw::driver
