#include <fmt/format.h>

#include "driver/certificate/again.h"
#include "driver/certificate/cubin_code.h"
#include "driver/certificate/verifier.h"
#include "driver/proof/proof.h"
#include "support/files.h"
#include "support/process.h"

namespace kw::driver {
namespace fs = std::filesystem;

using Json = nlohmann::json;

check::Effort Verifier::effort() const {
  for (const auto e : {check::Effort::quick, check::Effort::full})
    if (was_["effort"] == check::name(e)) return e;
  return check::Effort::usual;
}

// The verdict without what a GPU said.
Json Verifier::was_verdict() const {
  const bool by_gpu = !was_["gpu"].is_null() && was_["gpu"]["verdict"] != "holds";
  return by_gpu ? Json("holds") : Json(was_["verdict"]);
}

void Verifier::check() {
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

// Of the transfer and the check that were done again; where they could not be, the certificate's.
std::vector<tl::ExprPtr> Verifier::requirements() const {
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

void Verifier::launch() {
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
void Verifier::begin_proof() {
  if (!capture_ || !transferred_) return;
  rows_ = std::async(std::launch::async, [this] {
    Diagnostics d;
    std::error_code failed;
    fs::create_directories(scratch_.path() / "rows", failed);
    write_proof(scratch_.path() / "rows", *capture_, *transferred_, d);
    return d;
  });
}

void Verifier::proof() {
  if (!rows_.valid())
    return add("proof", Standing::not_rerun, "neither specification nor transfer could be rerun");
  if (const Diagnostics d = rows_.get(); d.has_errors()) return failed_at("proof", d);
  const OtherProof other = other_proof(tree_.texts, scratch_.path() / "rows");
  say_same("prove.json", other.cases);
  if (other.goldens.empty() && !other.nearly.empty())
    return add("goldens", Standing::not_rerun, other.nearly);
  say_same("goldens", other.goldens);
}

void Verifier::cubin() {
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
    return add(
        "cubin", Standing::not_rerun,
        fmt::format("kernel.cubin was built by {}, this is {}, whose code differs", by, compiler_));
  }
  compare("cubin", was_checked("cubin"), Json(cubin_facts(*plan_, *built)));
}

void Verifier::gpu() {
  if (was_["gpu"].is_null()) return;
  Claims merged(was_);
  Diagnostics d;
  if (!add_proof(merged, text_of("gpu.json"), d)) return failed_at("gpu", d);
  const std::string differs = difference(was_["gpu"], Json(merged["gpu"]));
  if (!differs.empty()) return add("gpu", Standing::changed, differs);
  const ProcessResult run = run_process({beside("kernelwright-prove"), folder_.string()}, {}, 600);
  if (run.exit_code == static_cast<int>(Exit::inconclusive))
    return add("gpu", Standing::not_rerun, "no GPU here, or no case of it applied");
  const bool held = was_["gpu"]["verdict"] == "holds", does = run.exit_code == 0;
  add("gpu", held == does ? Standing::holds : Standing::changed,
      held == does ? ""
                   : fmt::format("was {}, kernelwright-prove ends with {}",
                                 held ? "holds" : "refuted", run.exit_code));
}

}  // namespace kw::driver
