#include "driver/certificate/certify.h"

#include "driver/certificate/certificate.h"
#include "driver/certificate/verify.h"
#include "driver/environment/tools.h"
#include "driver/make/report.h"
#include "support/files.h"

namespace kw::driver {
namespace fs = std::filesystem;

bool ran_on_gpu(const std::string& proof) {
  std::string why;
  const auto report = parse_claims(proof, why);
  return report && report->is_object() && report->value("machine", Claims()).is_object();
}

bool certify(const fs::path& folder, const std::string& proof, Diagnostics& diagnostics) {
  const auto tools = find_tools(diagnostics);
  const auto schema = tools ? certificate_schema(tools->home, diagnostics) : std::nullopt;
  const fs::path file = folder / "certificate.json";
  const SourcePtr text = read_source(file.string());
  if (!text)
    diagnostics.error("certificate.file", {}, "there is no file '" + file.string() + "'").hint =
        "name a folder that make wrote";
  auto claims = schema && text ? read_certificate(text, *schema, diagnostics) : std::nullopt;
  if (!claims || !add_proof(*claims, proof, diagnostics)) return false;
  if (!write_file(folder / "gpu.json", proof) ||
      !write_file(folder / "certificate.json", claims->dump(1) + "\n")) {
    diagnostics.error("cli.write", {}, "cannot write into '" + folder.string() + "'");
    return false;
  }
  return report({folder.string(), ""}, diagnostics) == Exit::holds;
}

}  // namespace kw::driver
