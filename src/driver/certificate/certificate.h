// certificate.json: what exactly was checked, by what, with which seeds, and what was not.
//
// It makes a kernel's claim repeatable. The folder that it stands in holds all that the claim is
// about, and what it was made from (`from/`); every file is named with its hash, every tool with
// its version, every case of every reading with its sizes and seed. What nobody checked is part of
// the claim, in words. docs/certificate.md explains each field, docs/certificate.schema.json is
// its exact form, and `kernelwright verify` (verify.h) does all of it again.
//
// The certificate is put together from pieces, one function each, so that verify can make one piece
// again and compare. Every file of the folder but certificate.json is in it with its hash, and all
// of them together are in its root (tree.h).
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "check/check.h"
#include "driver/certificate/tree.h"
#include "driver/environment/tools.h"
#include "lower/launch_plan.h"
#include "transfer/transfer.h"

namespace kw::driver {

// In the order in which a person reads: verdict first.
using Claims = nlohmann::ordered_json;

inline constexpr char kCertificateSchema[] = "kernelwright.certificate/2";
// Of a function and its gradients, two kernels in one folder (training/halves.h).
inline constexpr char kTrainingSchema[] = "kernelwright.certificate.training/1";

// The exported graph as it was written, for what the form does not say.
struct CapturedGraph {
  std::string text;  // graph.json

  // SHA-256 of all that the function means: without times, versions, the file's place and the
  // examples, which may be drawn at random.
  std::string sha256() const;
  // "asked" / "function", "made_by" / "torch", "name": "" where the graph does not say.
  std::string said(const char* part, const char* field) const;
};

// Where the text that was changed came from.
enum class Start { corpus, sketch, own_kernel, own_sketch };
const char* name(
    Start start);  // "the corpus", "a sketch of the corpus", "a kernel of the user's own", ...
std::optional<Start> start_named(const std::string& name);

struct Claim {
  const spec::Capture& capture;
  const CapturedGraph& graph;
  const SourcePtr& expert;
  Start start = Start::corpus;
  const transfer::Result& transferred;
  const check::Report& report;
  const lower::LaunchPlan& plan;
  const Built& built;
  std::filesystem::path folder;  // complete but for the certificate
  bool by_hand = false;          // a person's edits came on top of what the rules wrote
};

// In `from/`: kernel.cu before the edits, where a person edited it.
inline constexpr char kByRules[] = "rules.cu";

// Of a folder without its report.html, which shows what this says (make/report.h).
Claims certificate(const Tools& tools, const Claim& claim);

// Another file of the folder, or another text of one: its hash, and with it the root.
void name_file(Claims& certificate, const std::string& name, const std::string& text);
Hashes named_files(const Claims& certificate);

// ---- the pieces

Claims spec_facts(const spec::Capture& capture, const CapturedGraph& graph);
// The laws and the readings of a check, one object each: "check", "claim", "holds", "coverage".
Claims check_facts(const check::Report& report);
Claims expert_facts(const Source& expert, Start start);
Claims transfer_facts(const transfer::Result& result, bool by_hand);
Claims lens_facts(int statements, bool by_hand);
int count_statements(const tl::Program& program);
Claims cubin_facts(const lower::LaunchPlan& plan, const Built& built);
Claims tool_facts(const Tools& tools, const CapturedGraph& graph, const std::string& compiler);
std::vector<std::string> not_checked(const check::Report& report);
std::vector<std::string> trusted();

// A JSON text that somebody else may have written. Nothing where it is none, where a number is
// larger than any double, where values are nested deeper than any of ours (walking them is
// recursive), or where an object has a name twice, of which other readers may take the other value;
// `why` says which.
std::optional<Claims> parse_claims(const std::string& text, std::string& why);

// Adds what kernelwright-prove --json found to a certificate, and takes back that no GPU ran.
// Reports certificate.proof when the report is of another cubin, or not one.
bool add_proof(Claims& certificate, const std::string& report_text, Diagnostics& diagnostics);

}  // namespace kw::driver
