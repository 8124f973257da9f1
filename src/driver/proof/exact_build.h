// A KW_EXACT build of a kernel that make wrote, and what it must give: the lowered text itself,
// with its layouts, addresses, barriers, masks and rescalings, held against the executor bit for
// bit.
//
// The text is compiled as it is, with -DKW_EXACT: the vocabulary then computes in the small algebra
// (cuda/kw/exact/real.cuh). The same program runs on the executor in the same algebra
// (num/small_algebra.h), at shapes of prove.json and with the same inputs, whose 16-bit patterns
// are taken for words of the algebra. OUT becomes a folder for kernelwright-prove:
//
//   OUT/  kernel.cubin  launch.json  prove.json  prove/
//
// Every element of the output must have the executor's word. Of the log-sum only the second residue
// is compared: the other has no meaning.
#pragma once
#include <string>

#include "driver/make/make.h"

namespace kw::driver {

struct ExactBuildOptions {
  std::string folder, out;
};

// Reports and does not write OUT where the folder is not complete (exact.folder), the program does
// not run (exec.*), or the build fails (build.*).
Exit exact_build(const ExactBuildOptions& options, const Say& say, Diagnostics& diagnostics);

}  // namespace kw::driver
