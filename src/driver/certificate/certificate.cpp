#include "driver/certificate/certificate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/files.h"
#include "support/version.h"
#include "tl/laws/laws.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

constexpr char kNoGpu[] =
    "on a GPU: this machine ran none; errors and times on one are kernelwright-prove's and bench's "
    "to show";
constexpr char kOneGpu[] =
    "on a GPU: sizes and inputs beyond the cases of gpu.json, and other GPUs";

Claims one_check(const char* id, const char* claim, bool holds, Claims coverage) {
  return {{"check", id}, {"claim", claim}, {"holds", holds}, {"coverage", std::move(coverage)}};
}

// Names in a list of the kind "order, root".
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  for (size_t at = 0; at < list.size();) {
    const size_t comma = std::min(list.find(", ", at), list.size());
    out.push_back(list.substr(at, comma - at));
    at = comma + 2;
  }
  return out;
}

Claims indices_check(const proofs::Report& r) {
  Claims proved = Claims::array(), open = Claims::array(), limits = Claims::array();
  for (const proofs::Limit& l : r.limits) limits.push_back(proofs::print(l));
  for (const proofs::Obligation& o : r.obligations)
    (o.answer == proofs::Answer::proved ? proved : open).push_back(o.what);
  Claims rounding = Claims::array();
  if (r.rounding)
    for (const int64_t keys : proofs::kTold)
      rounding.push_back(fmt::format("at most {:.2g} of a row's largest value at {} keys",
                                     r.rounding->at(keys), keys));
  return one_check(
      "indices",
      "for every size up to 2^24, which launchers ask, within the limits, and every 32-bit integer "
      "of the data but where an obligation says less, by a solver; docs/soundness.md says what of "
      "the program that covers",
      open.empty(),
      {{"proved", proved}, {"open", open}, {"limits", limits}, {"rounding", rounding}});
}

Claims exact_check(const check::ExactReport& exact, bool holds) {
  return one_check(
      "exact",
      "the program and the specification in an algebra without rounding, where every element of "
      "every output must be the same; docs/soundness.md says what that proves",
      holds,
      {{"cases", exact.shapes},
       {"runs", exact.runs},
       {"rows", exact.rows},
       {"difference_missed_with_probability_below", exact.error_bound},
       {"opaque_operations", split(exact.opaque)}});
}

Claims schedules_check(const exec::ScheduleReport& r) {
  return one_check(
      "schedules",
      "in every order of the agents no race, deadlock, missing fence or early read, so one outcome",
      r.holds(),
      {{"agents", r.agents},
       {"kinds_of_blocks", r.profiles},
       {"instances", r.instances},
       {"events", r.events},
       {"all_sequences_of_blocks", r.closed},
       {"states", r.states},
       {"any_number_of_key_blocks", r.any_length()},
       {"period", r.period},
       {"not_closed", r.not_closed},
       {"explored_states", r.explored},
       {"exploration_cut", r.cut},
       {"queue_states", r.queue_states}});
}

}  // namespace

std::string CapturedGraph::sha256() const {
  nlohmann::json graph = nlohmann::json::parse(text, nullptr, false);
  if (!graph.is_object()) return kw::sha256(text);
  for (const char* part : {"seconds", "file", "asked", "made_by", "examples"}) graph.erase(part);
  return kw::sha256(graph.dump());
}

std::string CapturedGraph::said(const char* part, const char* field) const {
  const nlohmann::json graph = nlohmann::json::parse(text, nullptr, false);
  const auto at = graph.is_object() ? graph.find(part) : graph.end();
  if (at == graph.end() || !at->is_object()) return "";
  const auto found = at->find(field);
  return found != at->end() && found->is_string() ? found->get<std::string>() : "";
}

const char* name(Start start) {
  switch (start) {
    case Start::corpus:
      return "the corpus";
    case Start::sketch:
      return "a sketch of the corpus";
    case Start::own_kernel:
      return "a kernel of the user's own";
    case Start::own_sketch:
      return "a sketch of the user's own";
  }
  return "";
}

std::optional<Start> start_named(const std::string& name) {
  for (const Start s : {Start::corpus, Start::sketch, Start::own_kernel, Start::own_sketch})
    if (name == driver::name(s)) return s;
  return std::nullopt;
}

Hashes named_files(const Claims& certificate) {
  Hashes files;
  for (const auto& [name, hash] : certificate["files"].items()) files[name] = hash;
  return files;
}

void name_file(Claims& certificate, const std::string& name, const std::string& text) {
  Hashes files = named_files(certificate);
  files[name] = sha256(text);
  certificate["files"] = files;
  certificate["root"] = root_of(files);
}

Claims spec_facts(const spec::Capture& capture, const CapturedGraph& graph) {
  Claims facts = {
      {"file", {{"name", capture.source->name}, {"sha256", sha256(capture.source->text)}}},
      {"function", graph.said("asked", "function")},
      {"dtype", graph.said("asked", "dtype")},
      {"name", capture.form.name},
      {"form", spec::print(capture.form)},
      {"graph_sha256", graph.sha256()}};
  if (const std::string training = spec::word(capture.training); !training.empty())
    facts["training"] = training;
  return facts;
}

Claims expert_facts(const Source& expert, Start start) {
  return {{"name", expert.name}, {"from", name(start)}, {"sha256", sha256(expert.text)}};
}

Claims transfer_facts(const transfer::Result& t, bool by_hand) {
  Claims rules = Claims::array(), bindings = Claims::array(), conditions = Claims::array();
  for (const transfer::AppliedRule& r : t.rules)
    rules.push_back({{"rule", r.name}, {"before", r.before}, {"after", r.after}});
  for (const transfer::Binding& b : t.bindings) {
    bindings.push_back({{"argument", b.argument}, {"user", b.user}, {"dims", b.dims}});
    if (b.group > 1) bindings.back()["group"] = b.group;
  }
  for (const transfer::Condition& c : t.conditions)
    conditions.push_back({{"holds", tl::print(c.holds)}, {"why", c.why}});
  return {{"proposer", by_hand ? t.proposer + ", then a person" : t.proposer},
          {"rules", rules},
          {"bindings", bindings},
          {"notes", t.notes},
          {"conditions", conditions}};
}

Claims check_facts(const check::Report& report) {
  const bool holds = report.verdict == check::Verdict::holds;
  Claims out = Claims::array();
  out.push_back(one_check("laws", "the program obeys every numbered law of TL",
                          report.verdict != check::Verdict::invalid,
                          {{"laws", tl::laws().size()}}));
  out.push_back(one_check(
      "values",
      "the program on a CPU, every stored value rounded as on the GPU, against the specification "
      "in fp64; per row at most twice the larger of the user's own error and half a unit in the "
      "last place",
      holds,
      {{"cases", report.shapes},
       {"rows", report.rows},
       {"worst_error_over_allowed", report.worst}}));
  out.push_back(one_check(
      "key_blocks",
      "in the same runs, skipped key blocks keep nothing, and unmasked ones keep everything", holds,
      {{"blocks", report.key_blocks}}));
  if (report.indices && report.indices->not_run.empty())
    out.push_back(indices_check(*report.indices));
  if (report.exact.ran) out.push_back(exact_check(report.exact, holds));
  if (report.schedules) out.push_back(schedules_check(*report.schedules));
  return out;
}

int count_statements(const tl::Program& program) {
  int count = 0;
  tl::walk(program.body, [&](const tl::Stmt&) { ++count; });
  return count;
}

Claims lens_facts(int statements, bool by_hand) {
  const char* claim =
      by_hand ? "lifting kernel.cu gives kernel.tl back, token for token; kernel.cu is "
                "from/rules.cu as a person edited it"
              : "lifting kernel.cu gives kernel.tl back, token for token, and kernel.tl "
                "written into from/expert.cu gives kernel.cu";
  return one_check("lens", claim, true, {{"statements", statements}});
}

Claims cubin_facts(const lower::LaunchPlan& plan, const Built& built) {
  const runtime::EntryResources& r = built.resources;
  return one_check(
      "cubin",
      "the module's entries, no global variables, nothing undefined, no spills, no serialised "
      "products",
      true,
      {{"entry", plan.entry},
       {"registers_at_entry", r.registers},
       {"spill_bytes", r.spill_stores + r.spill_loads},
       {"dynamic_shared_bytes", plan.shared_bytes}});
}

Claims tool_facts(const Tools& tools, const CapturedGraph& graph, const std::string& compiler) {
  Diagnostics unused;
  const auto or_unknown = [](const std::string& text) { return text.empty() ? "unknown" : text; };
  return {{"compiler", compiler},
          {"clang", lift::clang_version(tools.clang, unused).value_or("unknown")},
          {"python", or_unknown(graph.said("made_by", "python"))},
          {"torch", or_unknown(graph.said("made_by", "torch"))}};
}

std::vector<std::string> not_checked(const check::Report& report) {
  std::vector<std::string> list = {
      kNoGpu,
      check::not_proved(report).empty()
          ? "offsets that need more than 32 bits"
          : "sizes beyond those of the cases, in particular beyond 32-bit offsets",
      "inputs with NaN or infinities",
      "approximate instructions (ex2, lg2, rcp, rsqrt, tanh) are taken as correctly rounded"};
  if (!report.exact.ran) list.push_back("exact reading: " + report.exact.not_run);
  if (report.unseen)
    for (const std::string& change : report.unseen->changes)
      list.push_back("the cases do not see: " + change);
  if (report.indices && !report.indices->not_run.empty())
    list.push_back("indices beyond the cases' sizes: " + report.indices->not_run);
  if (report.indices)
    for (const proofs::Obligation& o : report.indices->obligations)
      if (o.answer == proofs::Answer::unknown)
        list.push_back(fmt::format("indices beyond the cases' sizes: {}: {}", o.what, o.why));
  if (report.indices && report.indices->small_reals)
    list.push_back(
        "integers of the data beyond 2^24 that become reals: fp32 does not hold all of them, and "
        "sums of some round otherwise than the function's");
  if (report.indices && report.indices->small_data)
    list.push_back(
        "integers of the data beyond 2^29: sums of them are 32-bit integers in the kernel");
  if (!report.schedules) {
    list.push_back(
        "schedules: one fixed order of the agents was run; races, missing fences and orders that "
        "only other schedules show were not looked for");
  } else {
    list.push_back(
        "schedules: that a fingerprint of a state holds all that its future depends on is argued "
        "and tested by mutants, not proved; register reallocation and the fences that wgmma needs "
        "for its registers are not modelled");
    if (!report.schedules->closed)
      list.push_back("schedules of launches beyond the instances: " + report.schedules->not_closed);
    else if (!report.schedules->any_length())
      list.push_back(
          "schedules of blocks with more key blocks than the kinds that were looked at: a long one "
          "was not seen to repeat");
  }
  if (!report.unreached.empty())
    list.push_back(fmt::format(
        "launches with more rows and keys than {}: it is written with these numbers, and no case "
        "reaches them",
        fmt::join(report.unreached, ", ")));
  if (!report.exact.apart.empty())
    list.push_back(fmt::format(
        "formulas of other integers than ran: with {} the program is another one than the function",
        report.exact.apart));
  if (!report.integers.empty() && check::scope(report) != check::Scope::every_launch)
    list.push_back(
        fmt::format("other integers of the data than {}", fmt::join(report.integers, ", ")));
  if (report.effort == check::Effort::quick)
    list.push_back("the default check's further cases: this one was quick (--check quick)");
  return list;
}

std::vector<std::string> trusted() {
  return {"the meaning of each function of the device vocabulary (tests/gpu holds them to it)",
          "NVRTC, ptxas and the driver", "PyTorch's fp64 operators"};
}

Claims certificate(const Tools& tools, const Claim& claim) {
  Claims checked = check_facts(claim.report);
  int statements = 0;
  tl::walk(claim.transferred.program.body, [&](const tl::Stmt&) { ++statements; });
  checked.push_back(lens_facts(statements, claim.by_hand));
  checked.push_back(cubin_facts(claim.plan, claim.built));
  const Hashes files = hash_files(claim.folder);
  return {{"schema", kCertificateSchema},
          {"kernelwright", version()},
          {"verdict", check::name(claim.report.verdict)},
          {"holds_for", name(scope(claim.report))},
          {"effort", name(claim.report.effort)},
          {"target", claim.plan.target},
          {"not_checked", not_checked(claim.report)},
          {"checked", std::move(checked)},
          {"gpu", nullptr},
          {"trusted", trusted()},
          {"spec", spec_facts(claim.capture, claim.graph)},
          {"expert", expert_facts(*claim.expert, claim.start)},
          {"transfer", transfer_facts(claim.transferred, claim.by_hand)},
          {"tools", tool_facts(tools, claim.graph, claim.built.compiler)},
          {"root", root_of(files)},
          {"files", files}};
}

bool add_proof(Claims& certificate, const std::string& report_text, Diagnostics& diagnostics) {
  const auto refuse = [&](const std::string& what) {
    diagnostics.error("certificate.proof", {}, what).hint =
        "run kernelwright-prove FOLDER --json on the GPU machine with this very folder";
    return false;
  };
  std::string why;
  const Claims report = parse_claims(report_text, why).value_or(Claims());
  const bool is_report = report.is_object() && report.value("cubin_sha256", Claims()).is_string() &&
                         report.value("machine", Claims()).is_object() &&
                         report.value("verdict", Claims()).is_string() &&
                         report.value("cases", Claims()).is_array();
  if (!is_report)
    return refuse(
        "the report is not what kernelwright-prove --json writes: it has no cubin_sha256, "
        "machine, verdict and cases");
  const std::string about = report["cubin_sha256"], ours = certificate["files"]["kernel.cubin"];
  if (about != ours)
    return refuse(
        fmt::format("the report is about the cubin {:.12}..., the certificate about {:.12}"
                    "...",
                    about, ours));
  Claims cases = Claims::array();
  for (const Claims& one : report["cases"])
    cases.push_back(one.is_object() && one.contains("name") ? one["name"] : Claims("unnamed"));
  // A prover that could not read its input, or failed, has said nothing about the kernel.
  std::string verdict = report["verdict"];
  if (verdict != "holds" && verdict != "refuted") verdict = "inconclusive";
  certificate["gpu"] = {{"report", "gpu.json"},
                        {"machine", report["machine"]},
                        {"verdict", verdict},
                        {"cases", cases}};
  name_file(certificate, "gpu.json", report_text);
  certificate["verdict"] = verdict;  // make writes only what holds without a GPU
  Claims left = Claims::array();
  for (const Claims& sentence : certificate["not_checked"])
    if (sentence != kNoGpu && sentence != kOneGpu) left.push_back(sentence);
  left.insert(left.begin(), kOneGpu);
  certificate["not_checked"] = left;
  return true;
}

}  // namespace kw::driver
