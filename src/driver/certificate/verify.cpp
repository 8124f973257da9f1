#include "driver/certificate/verify.h"

#include <fmt/format.h>

#include <future>

#include "driver/certificate/again.h"
#include "driver/certificate/cubin_code.h"
#include "driver/make/report.h"
#include "driver/proof/proof.h"
#include "driver/start/from_sketch.h"
#include "driver/start/port.h"
#include "lower/lower.h"
#include "report/page.h"
#include "support/files.h"
#include "support/process.h"
#include "support/version.h"
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
      : tools_(tools), folder_(std::move(folder)), claims_(was), was_(Json(was)), say_(say) {}

  std::vector<Item> run(bool quick) {
    if (!files()) {
      nothing_more("a file is not the one that the certificate names");
    } else if (quick) {
      nothing_more(
          "only hashes were asked for; nothing that the certificate claims was done again");
    } else {
      all();
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
  void failed_at(const std::string& what, const Diagnostics& d) {
    if (lacks_a_tool(d))
      add(what, Standing::not_rerun, first_error(d));
    else
      add(what, Standing::changed, "was accepted, is refused: " + first_error(d));
  }
  void compare(const std::string& what, const Json& was, const Json& is) {
    say_same(what, difference(was, is));
  }
  // "" is a part that is as it was.
  void say_same(const std::string& what, const std::string& differs) {
    add(what, differs.empty() ? Standing::holds : Standing::changed, differs);
  }
  void nothing_more(const std::string& why) { add("readings", Standing::not_rerun, why); }

  // As it was hashed.
  std::string text_of(const std::string& file) const {
    const auto at = tree_.texts.find(file);
    return at == tree_.texts.end() ? std::string() : at->second;
  }
  SourcePtr source_of(const std::string& file) const { return make_source(file, text_of(file)); }
  // The entry of /checked with this id; null where the certificate has none.
  Json was_checked(const std::string& id) const {
    for (const Json& one : was_["checked"])
      if (one["check"] == id) return one;
    return nullptr;
  }

  // ---- the items

  void all() {
    say_same("vocabulary", other_vocabulary(tools_.home, tree_.texts));
    capture();
    if (read_program()) {
      if (read_expert()) transfer();
      begin_proof();
      lens();
      check();
      launch();
      proof();
      cubin();
    }
    words();
    gpu();
    say_same("report", draw_report(tools_, folder_, claims_) == text_of(report::kPage)
                           ? ""
                           : "report.html was drawn of this certificate, is another page");
    tools();
  }

  bool files() {
    constexpr size_t kShown = 12;
    const Hashes named = named_files(claims_);
    tree_ = read_tree(folder_, named);
    const std::vector<Stray>& strays = tree_.strays;
    for (size_t n = 0; n < std::min(strays.size(), kShown); ++n)
      add("file " + strays[n].name, Standing::changed, strays[n].what);
    if (strays.size() > kShown)
      add("files", Standing::changed, fmt::format("and {} more", strays.size() - kShown));
    const std::string was = was_["root"], is = root_of(named);
    if (was != is)
      add("root", Standing::changed,
          fmt::format("was {:.12}..., the hashes beside it give {:.12}...", was, is));
    if (strays.empty() && was == is) holds(fmt::format("{} files", named.size()));
    return strays.empty() && was == is;
  }

  // From a copy: what was hashed is what runs.
  void capture() {
    const Json& spec = was_["spec"];
    const std::string name = fs::path(spec["file"]["name"].get<std::string>()).filename();
    const fs::path file = scratch_.path() / "from" / name, out = scratch_.path() / "capture";
    std::error_code failed;
    fs::create_directories(file.parent_path(), failed);
    if (scratch_.path().empty() || failed || !tree_.texts.count("from/" + name) ||
        !write_file(file, text_of("from/" + name)))
      return tree_.texts.count("from/" + name)
                 ? add("capture", Standing::not_rerun, "no temporary folder can be written")
                 : add("capture", Standing::changed,
                       fmt::format("the specification is '{}', and there is no from/{}",
                                   spec["file"]["name"].get<std::string>(), name));
    Diagnostics d;
    capture_ = driver::capture(tools_, {file.string(), spec["function"], spec["dtype"], out}, d);
    if (!capture_) return failed_at("capture", d);
    graph_.text = read_source((out / "graph.json").string())->text;
    Json is(spec_facts(*capture_, graph_));
    is["file"]["name"] = spec["file"]["name"];  // it was read from another place
    const std::string differs = difference(spec, is);
    say_same("capture",
             differs.empty() ? other_graph(text_of("from/graph.json"), graph_.text) : differs);
  }

  bool read_program() {
    Diagnostics d;
    program_ = tl::parse(source_of("kernel.tl"), d);
    if (program_ && tl::verify(*program_, d)) return true;
    failed_at("program", d);
    return false;
  }

  bool by_hand() const { return was_["files"].contains(std::string("from/") + kByRules); }

  bool read_expert() {
    const Json& was = was_["expert"];
    expert_ = make_source(was["name"], text_of("from/expert.cu"));
    const Start start = *start_named(was["from"]);  // by the schema it has one of the names
    Diagnostics d;
    std::string differs = difference(was, Json(expert_facts(*expert_, start)));
    SourcePtr ours;
    if (differs.empty() && start == Start::corpus)
      ours = read_source((tools_.home.root / expert_->name).string());
    if (differs.empty() && start == Start::sketch && capture_)
      if (const auto drawn = from_sketch(tools_, capture_->form, was_["target"], "", d))
        ours = drawn->text;
    const bool known = start == Start::corpus || (start == Start::sketch && capture_);
    if (differs.empty() && known && (!ours || ours->text != expert_->text))
      differs = fmt::format(
          "from/expert.cu is {:.12}..., and {} of this build {}", was["sha256"].get<std::string>(),
          expert_->name,
          ours ? fmt::format("is {:.12}...", sha256(ours->text)) : std::string("is not there"));
    say_same("expert", differs);
    lifted_expert_ = lift::lift(expert_, tools_.clang, d);
    if (lifted_expert_ && tl::verify(*lifted_expert_, d)) {
      Diagnostics why_not;
      const bool sketch = start == Start::sketch || start == Start::own_sketch;
      plain_ = !sketch || is_plain(*lifted_expert_, why_not);
      return true;
    }
    failed_at("transfer", d);
    return false;
  }

  void transfer() {
    if (!capture_)
      return add("transfer", Standing::not_rerun, "the specification could not be captured");
    Diagnostics d;
    std::optional<tl::Program> by_rules;
    if (by_hand()) {
      by_rules = lift::lift(source_of(std::string("from/") + kByRules), tools_.clang, d);
      if (!by_rules || !tl::verify(*by_rules, d)) return failed_at("transfer", d);
    }
    const std::string proposer = was_["transfer"]["proposer"];
    std::string differs = other_attempts(proposer, tree_.texts);
    if (differs.empty())
      transferred_ =
          transferred_again({*lifted_expert_, plain_, *program_, proposer, was_["target"]},
                            by_rules, capture_->form, differs, d);
    if (!transferred_ && differs.empty()) return failed_at("transfer", d);
    if (transferred_)
      differs = difference(was_["transfer"], Json(transfer_facts(*transferred_, by_hand())));
    else
      differs = fmt::format("the proposer is \"{}\"; {}", proposer, differs);
    say_same("transfer", differs);
  }

  void lens() {
    Diagnostics d;
    const auto lifted = lift::lift(source_of("kernel.cu"), tools_.clang, d);
    if (!lifted) return failed_at("lens", d);
    if (!tl::equal(*lifted, *program_))
      return add("lens", Standing::changed,
                 "lifting kernel.cu gave kernel.tl, gives another program");
    const SourcePtr expert = make_source(was_["expert"]["name"], text_of("from/expert.cu"));
    if (by_hand()) {  // no rule gives its text: the patch is what stands for the change
      if (lower::line_changes(expert->name, expert->text, text_of("kernel.cu")).patch !=
          text_of("kernel.patch"))
        return add("lens", Standing::changed,
                   "kernel.patch was the change from from/expert.cu to kernel.cu, is another");
    } else {
      const auto lowered = lower::lower(*program_, expert, tools_.clang, d);
      if (!lowered) return failed_at("lens", d);
      if (lowered->text != text_of("kernel.cu") ||
          lowered->changes.patch != text_of("kernel.patch"))
        return add("lens", Standing::changed,
                   "kernel.tl written into from/expert.cu gave kernel.cu and kernel.patch, gives "
                   "another text");
    }
    compare("lens", was_checked("lens"), Json(lens_facts(count_statements(*program_), by_hand())));
  }

  // Of the transfer and the check that were done again; where they could not be, the certificate's.
  std::vector<tl::ExprPtr> requirements() const {
    Diagnostics d;
    std::vector<tl::ExprPtr> all;
    const auto add = [&](const std::string& text) {
      if (const tl::ExprPtr condition = tl::parse_expr(text, d)) all.push_back(condition);
    };
    if (transferred_)
      for (const transfer::Condition& c : transferred_->conditions) all.push_back(c.holds);
    else
      for (const Json& c : was_["transfer"]["conditions"]) add(c["holds"]);
    if (report_ && report_->indices)
      for (const proofs::Limit& l : report_->indices->limits) add(proofs::print(l));
    else if (const Json indices = was_checked("indices"); !report_ && !indices.is_null())
      for (const Json& limit : indices["coverage"]["limits"]) add(limit);
    return all;
  }

  void launch() {
    Diagnostics d;
    plan_ = lower::plan_launch(*program_, was_["target"], d);
    if (!plan_) return failed_at("launch", d);
    for (const tl::ExprPtr& condition : requirements()) plan_->requirements.push_back(condition);
    const std::string text = to_json(*plan_).dump(1);
    if (text_of("launch.json") != text) {
      std::string why;
      const Json was(parse_claims(text_of("launch.json"), why).value_or(Claims()));
      const std::string differs = difference(was, to_json(*plan_));
      return add(
          "launch", Standing::changed,
          "launch.json: " + (differs.empty() ? "the same values are written otherwise" : differs));
    }
    if (text_of("launch.h") != lower::launch_header(*plan_, was_["spec"]["name"]))
      return add("launch", Standing::changed, "launch.h was made from kernel.tl, is another text");
    if (transferred_ && report_) return holds("launch");
    add("launch", Standing::not_rerun, "its requirements are the certificate's own word");
  }

  // Beside the check; neither writes what the other reads.
  void begin_proof() {
    if (!capture_ || !transferred_) return;
    rows_ = std::async(std::launch::async, [this] {
      Diagnostics d;
      std::error_code failed;
      fs::create_directories(scratch_.path() / "rows", failed);
      write_proof(scratch_.path() / "rows", *capture_, *transferred_, d);
      return d;
    });
  }

  void proof() {
    if (!rows_.valid())
      return add("proof", Standing::not_rerun, "neither specification nor transfer could be rerun");
    if (const Diagnostics d = rows_.get(); d.has_errors()) return failed_at("proof", d);
    const OtherProof other = other_proof(tree_.texts, scratch_.path() / "rows");
    say_same("prove.json", other.cases);
    if (other.goldens.empty() && !other.nearly.empty())
      return add("goldens", Standing::not_rerun, other.nearly);
    say_same("goldens", other.goldens);
  }

  check::Effort effort() const {
    for (const auto e : {check::Effort::quick, check::Effort::full})
      if (was_["effort"] == check::name(e)) return e;
    return check::Effort::usual;
  }

  void check() {
    if (!capture_)
      return add("check", Standing::not_rerun, "the specification could not be captured");
    report_ = check::check(*program_, *capture_, check::options_for(effort()));
    const check::Report& report = *report_;
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

  // Which checks there are, each once: another sentence on one of them would be nobody's. And what
  // is to be believed without one.
  void words() {
    if (report_) {
      std::vector<std::string> was, is;
      for (const Json& one : was_["checked"]) was.push_back(one["check"]);
      for (const Claims& one : check_facts(*report_)) is.push_back(one["check"]);
      is.insert(is.end(), {"lens", "cubin"});
      compare("checked", was, is);
    }
    compare("trusted", was_["trusted"], trusted());
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
    if (!built) return failed_at("cubin", d);
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
    if (!add_proof(merged, text_of("gpu.json"), d)) return failed_at("gpu", d);
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
    was["kernelwright"] = was_["kernelwright"], is["kernelwright"] = version();
    const std::string differs = difference(was, is);
    add("tools", differs.empty() ? Standing::holds : Standing::changed, differs, true);
  }

  const Tools& tools_;
  const fs::path folder_;
  const Claims& claims_;
  const Json was_;
  const Say& say_;
  StageClock clock_;
  TemporaryFolder scratch_;
  std::vector<Item> items_;
  Tree tree_;
  std::optional<tl::Program> program_, lifted_expert_;
  SourcePtr expert_;
  bool plain_ = true;  // the expert's text computes plain attention
  std::optional<spec::Capture> capture_;
  CapturedGraph graph_;
  std::optional<transfer::Result> transferred_;
  std::optional<check::Report> report_;
  std::optional<lower::LaunchPlan> plan_;
  std::string compiler_;
  std::future<Diagnostics> rows_;  // last: it ends before what it reads
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
  std::string what;
  const SourcePtr text = is_file(file, what) ? read_source(file.string()) : nullptr;
  if (!text) {
    const bool none = what == "not there";
    diagnostics
        .error("certificate.file", {},
               none ? fmt::format("there is no file '{}'", file.string())
                    : fmt::format("'{}' is {}, and make writes a file that can be read",
                                  file.string(), what))
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
  out.items = Verifier(*tools, folder, *was, say).run(options.quick);
  out.exit = exit_of(*was, out.items);
  return out;
}

}  // namespace kw::driver
