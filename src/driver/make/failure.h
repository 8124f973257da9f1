// What make leaves when its check does not hold: a page that says what is wrong, and no kernel.
//
//   out/NAME.refuted/  or  out/NAME.inconclusive/
//     report.html   the counterexample, the first statement that differs (report/failed.h)
//     program.tl    what was checked
//     captured/     what it was held against: both, to be checked again anywhere
//
// `kernelwright check --report FILE` writes the page alone, about a program that somebody wrote.
//
// The folder has another name than a kernel's, so that nobody who looks for out/NAME finds it.
#pragma once
#include <filesystem>

#include "driver/make/make.h"
#include "lower/launch_plan.h"
#include "lower/lower.h"

namespace kw::driver {

// How a make came to the program that was checked.
struct Making {
  const MakeOptions& options;
  const SourcePtr& expert;        // the kernel that it started from,
  const tl::Program& source;      // lifted
  const lower::Lowered& lowered;  // the program as CUDA text, statement by statement
  const lower::LaunchPlan& plan;
};

struct Refusal {
  const spec::Capture& capture;
  std::filesystem::path captured;  // the folder that it was read from
  const tl::Program& program;      // that was checked
  const check::Report& report;     // "refuted" or "inconclusive"
  const Making* making = nullptr;  // null: somebody's program, from `kernelwright check`
};

// Writes the folder beside `target`, where a kernel would have been written, in the place of an
// earlier one; returns where. Reports driver.write, and driver.out where something stands there
// that is not of an earlier make. `refusal.making` is not null.
std::optional<std::filesystem::path> write_refusal(const Refusal& refusal,
                                                   const std::filesystem::path& target,
                                                   Diagnostics& diagnostics);

// Removes what an earlier make left beside `target`; not what somebody else put there.
void remove_refusals(const std::filesystem::path& target);

// The page alone. Reports driver.write.
bool write_refusal_page(const Refusal& refusal, const std::filesystem::path& file,
                        Diagnostics& diagnostics);

}  // namespace kw::driver
