// The shared memory that a program takes, held against what its target has.
#pragma once
#include <string>
#include <vector>

#include "lower/launch_plan.h"

namespace kw::lower {

// One declaration: "tile k_s: 2 of 64 x 128, 32768 bytes".
struct SharedLine {
  std::string text;
  int64_t bytes;
};

// Reports launch.shared at `where` with the sum line by line. A target without limits in
// support/targets.h passes: the compiler is asked.
bool fits_target(const LaunchPlan& plan, const std::vector<SharedLine>& lines, const Span& where,
                 Diagnostics& diagnostics);

}  // namespace kw::lower
