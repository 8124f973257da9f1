#include "driver/certificate.h"

#include "driver/cpu_self_test.h"
#include "support/files.h"

namespace kw::driver {
namespace {

using Json = nlohmann::json;

Json hashed(const std::string& name, std::string_view text) {
  return {{"name", name}, {"sha256", sha256(text)}};
}

// All files of the vocabulary as one hash: names and texts in order.
std::string vocabulary_hash(const Home& home) {
  std::string all;
  for (const auto& [name, text] : vocabulary_files(home)) all += name + "\n" + text + "\n";
  return sha256(all);
}

Json transfer_facts(const transfer::Result& t) {
  Json rules = Json::array(), bindings = Json::array(), conditions = Json::array();
  for (const transfer::AppliedRule& r : t.rules)
    rules.push_back({{"rule", r.name}, {"before", r.before}, {"after", r.after}});
  for (const transfer::Binding& b : t.bindings)
    bindings.push_back({{"argument", b.argument}, {"user", b.user}, {"dims", b.dims}});
  for (const transfer::Condition& c : t.conditions)
    conditions.push_back({{"holds", tl::print(c.holds)}, {"why", c.why}});
  return {{"proposer", "rules"},
          {"rules", rules},
          {"bindings", bindings},
          {"notes", t.notes},
          {"conditions", conditions}};
}

// What the exact reading adds to the checks, or to what was not checked.
Json exact_facts(const check::ExactReport& exact, bool holds) {
  return {{"what",
           "exact: the program and the specification in an algebra without rounding, where every "
           "element of every output must be the same; docs/soundness.md says what that proves"},
          {"holds", holds},
          {"cases", exact.cases},
          {"runs", exact.runs},
          {"rows", exact.rows},
          {"difference_missed_with_probability_below", exact.error_bound},
          {"opaque", exact.opaque}};
}

Json not_checked(const check::Report& report) {
  Json list = {
      "this machine ran no GPU: errors and times on one are kernelwright-prove's and bench's to "
      "show",
      "sizes beyond those of the cases, in particular beyond 32-bit offsets",
      "inputs with NaN or infinities",
      "approximate instructions (ex2, lg2, rcp) are taken as correctly rounded"};
  if (const std::string doubt = cpu_doubt(); !doubt.empty()) list.push_back(doubt);
  if (!report.exact.ran) list.push_back("exact reading: " + report.exact.not_run);
  if (!report.schedules)
    list.push_back(
        "schedules: one fixed order of the agents was run; races, missing fences and orders that "
        "only other schedules show were not looked for");
  else
    list.push_back(
        "schedules: that a fingerprint of a state holds all that its future depends on is argued "
        "and tested by mutants, not proved; register reallocation and the fences that wgmma needs "
        "for its registers are not modelled");
  if (report.schedules && !report.schedules->closed)
    list.push_back("schedules of launches beyond the instances: " + report.schedules->not_closed);
  if (report.effort == check::Effort::quick)
    list.push_back("the default check's further cases: this one was quick (--check quick)");
  return list;
}

Json schedules_facts(const exec::ScheduleReport& schedules) {
  Json facts = exec::to_json(schedules);
  facts["what"] =
      "schedules: in every order of the agents no race, deadlock, missing fence or early read, so "
      "one outcome";
  return facts;
}

}  // namespace

Json certificate(const Tools& tools, const Claim& claim) {
  const spec::Form& form = claim.capture.form;
  const bool holds = claim.report.verdict == check::Verdict::holds;
  Json seeds = Json::array();
  for (const spec::GoldenCase& c : claim.capture.cases) seeds.push_back(c.draws.seed);
  Diagnostics unused;
  Json out = {
      {"kernelwright", "0.1.0"},
      {"spec",
       {{"file", hashed(claim.capture.source->name, claim.capture.source->text)},
        {"form", spec::print(form)}}},
      {"expert", hashed(claim.expert->name, claim.expert->text)},
      {"vocabulary", {{"sha256", vocabulary_hash(tools.home)}}},
      {"program", hashed("kernel.tl", claim.program_text)},
      {"kernel", hashed("kernel.cu", claim.kernel_text)},
      {"cubin", hashed("kernel.cubin", claim.built.cubin)},
      {"target", claim.plan.target},
      {"resources",
       {{"registers_at_entry", claim.built.resources.registers},
        {"spill_bytes", claim.built.resources.spill_stores + claim.built.resources.spill_loads},
        {"dynamic_shared_bytes", claim.plan.shared_bytes}}},
      {"tools",
       {{"compiler", claim.built.compiler},
        {"clang", lift::clang_version(tools.clang, unused).value_or("unknown")}}},
      {"transfer", transfer_facts(claim.transferred)},
      {"verdict", check::name(claim.report.verdict)},
      {"effort", name(claim.report.effort)},
      {"checked",
       {{{"what",
          "values: the program on a CPU, every stored value rounded as on the GPU, against the "
          "specification in fp64; per row at most twice the larger of the user's own error and "
          "half a unit in the last place"},
         {"holds", holds},
         {"cases", claim.report.cases},
         {"rows", claim.report.rows},
         {"worst_error_over_allowed", claim.report.worst},
         {"seeds", seeds}},
        {{"what", "key blocks: skipped ones keep nothing, unmasked ones keep everything"},
         {"holds", holds},
         {"blocks", claim.report.key_blocks}},
        {{"what", "laws of TL: the program obeys every numbered law"}, {"holds", true}},
        {{"what", "lens: lifting kernel.cu gives kernel.tl back, token for token"},
         {"holds", true}},
        {{"what",
          "cubin: one entry, no global variables, nothing undefined, no spills, no serialised "
          "products"},
         {"holds", true}}}},
      {"not_checked", not_checked(claim.report)},
      {"trusted",
       {"the meaning of each function of the device vocabulary (tests/gpu holds them to it)",
        "NVRTC, ptxas and the driver", "PyTorch's fp64 operators"}}};
  if (claim.report.exact.ran) out["checked"].push_back(exact_facts(claim.report.exact, holds));
  if (claim.report.schedules) out["checked"].push_back(schedules_facts(*claim.report.schedules));
  return out;
}

}  // namespace kw::driver
