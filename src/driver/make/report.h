// report.html in a folder that make wrote (report/page.h): by make itself, and again by
// `kernelwright report` once a proof or a benchmark has put its results there.
//
// The page shows what the certificate says, but for the page's own hash and the root, which the
// certificate has of it afterwards. So it can be drawn again and compared.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "driver/certificate/certificate.h"
#include "driver/environment/tools.h"

namespace kw::driver {

// What make has at hand already; null: it is lifted from the folder's texts.
struct LiftedKernels {
  const tl::Program* expert = nullptr;
  const tl::Program* kernel = nullptr;
};

// The page of a folder whose certificate this is.
std::string draw_report(const Tools& tools, const std::filesystem::path& folder,
                        const Claims& certificate, const LiftedKernels& lifted = {});

// Writes it, and the certificate, which names it then. Returns false when one cannot be written.
bool write_report(const Tools& tools, const std::filesystem::path& folder, Claims certificate,
                  const LiftedKernels& lifted = {});

struct ReportOptions {
  std::string folder;  // or its certificate.json
  std::string bench;   // a JSON of bench.py's, whose cases of this kernel are kept as bench.json
};

// Reports certificate.* where the certificate cannot be read, report.files where a file is another
// than the one it names, report.bench where the benchmark was of another kernel, and report.write.
Exit report(const ReportOptions& options, Diagnostics& diagnostics);

}  // namespace kw::driver
