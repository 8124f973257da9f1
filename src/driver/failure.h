// What make leaves when its check does not hold: a page that says what is wrong, and no kernel.
//
//   out/NAME.refuted/  or  out/NAME.inconclusive/
//     report.html   the counterexample, the first statement that differs (report/failed.h)
//     program.tl    what was checked, to be checked again
//
// The folder has another name than a kernel's, so that nobody who looks for out/NAME finds it.
#pragma once
#include <filesystem>

#include "driver/certificate.h"
#include "driver/make.h"
#include "lower/lower.h"

namespace kw::driver {

struct Refusal {
  const MakeOptions& options;
  const spec::Capture& capture;
  const CapturedGraph& graph;
  const SourcePtr& expert;        // the kernel that it started from,
  const tl::Program& source;      // lifted
  const tl::Program& program;     // that was checked
  const lower::Lowered& lowered;  // the same as CUDA text, statement by statement
  const lower::LaunchPlan& plan;
  const check::Report& report;  // "refuted" or "inconclusive"
};

// Writes the folder beside `target`, where a kernel would have been written, in the place of an
// earlier one; returns where. Reports driver.write, and driver.out where something stands there
// that is not of an earlier make.
std::optional<std::filesystem::path> write_refusal(const Refusal& refusal,
                                                   const std::filesystem::path& target,
                                                   Diagnostics& diagnostics);

// Removes what an earlier make left beside `target`; not what somebody else put there.
void remove_refusals(const std::filesystem::path& target);

}  // namespace kw::driver
