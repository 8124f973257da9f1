#include "driver/certificate/certify.h"

#include <fmt/format.h>

#include "driver/certificate/certificate.h"
#include "driver/certificate/verify.h"
#include "driver/environment/tools.h"
#include "driver/make/report.h"
#include "driver/training/training.h"
#include "support/files.h"
#include "support/process.h"

namespace kw::driver {
namespace fs = std::filesystem;

bool ran_on_gpu(const std::string& proof) {
  std::string why;
  const auto report = parse_claims(proof, why);
  return report && report->is_object() && report->value("machine", Claims()).is_object();
}

namespace {

// Of a folder for training the proof has a report for each half; each becomes part of its half, and
// what is said of both is written again.
bool certify_both(const Home& home, const fs::path& folder, const std::string& proof,
                  Diagnostics& diagnostics) {
  std::string why;
  const Claims reports = parse_claims(proof, why).value_or(Claims());
  const Claims halves = reports.is_object() ? reports.value("halves", Claims()) : Claims();
  for (const char* half : kHalves)
    if (!halves.is_object() || !halves.contains(half)) {
      diagnostics
          .error("certificate.proof", {},
                 fmt::format("{} holds two kernels, and the report has none of its {} one",
                             folder.string(), half))
          .hint = "run kernelwright-prove FOLDER --json on the GPU machine with this very folder";
      return false;
    }
  if (report({folder.string(), ""}, diagnostics) != Exit::holds) return false;  // its files
  for (const char* half : kHalves) {  // all is asked before anything is written
    const SourcePtr text = read_source((folder / half / "certificate.json").string());
    auto claims = text ? parse_claims(text->text, why) : std::nullopt;
    if (!claims || !add_proof(*claims, halves[half].dump(1), diagnostics)) return false;
  }
  for (const char* half : kHalves)
    if (!certify(folder / half, halves[half].dump(1), diagnostics)) return false;
  return write_training(home, folder, diagnostics).has_value();
}

}  // namespace

bool certify(const fs::path& folder, const std::string& proof, Diagnostics& diagnostics) {
  const auto tools = find_tools(diagnostics);
  const auto schema = tools ? certificate_schema(tools->home, diagnostics) : std::nullopt;
  const fs::path file = folder / "certificate.json";
  const SourcePtr text = read_source(file.string());
  if (!text)
    diagnostics.error("certificate.file", {}, "there is no file '" + file.string() + "'").hint =
        "name a folder that make wrote";
  if (tools && text && is_of_training(text->text))
    return certify_both(tools->home, folder, proof, diagnostics);
  auto claims = schema && text ? read_certificate(text, *schema, diagnostics) : std::nullopt;
  if (!claims || !add_proof(*claims, proof, diagnostics)) return false;
  if (!write_file(folder / "gpu.json", proof) ||
      !write_file(folder / "certificate.json", claims->dump(1) + "\n")) {
    diagnostics.error("cli.write", {}, "cannot write into '" + folder.string() + "'");
    return false;
  }
  return report({folder.string(), ""}, diagnostics) == Exit::holds;
}

Exit prove_here(const fs::path& folder, int seconds, std::string& said, Diagnostics& diagnostics) {
  const ProcessResult run =
      run_process({beside("kernelwright-prove"), folder.string(), "--json"}, {}, seconds);
  said = run.err;
  if (ran_on_gpu(run.out) && !certify(folder, run.out, diagnostics)) return exit_for(diagnostics);
  for (const Exit end : {Exit::holds, Exit::refuted, Exit::inconclusive})
    if (run.exit_code == static_cast<int>(end)) return end;
  return Exit::own_fault;
}

}  // namespace kw::driver
