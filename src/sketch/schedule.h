// From a sized plan to a scheduled kernel: who does what when.
//
//   kernelwright schedule SIZED.tl --gpu a100
//
// By what the machine can do: schedule_alike.cpp for those whose warps copy and multiply for
// themselves, schedule_engine.cpp for Hopper's copy engine and asynchronous products. Sizes are
// taken as they are, whoever wrote them, and held against the GPU once more.
#pragma once
#include <optional>

#include "sketch/budget.h"

namespace kw::sketch {

// A scheduled program that obeys the laws. Reports what read_plan reports, sketch.shape for a loop
// that is not two products with a to_operand between them, and sketch.fit for tiles that do not
// fit.
std::optional<tl::Program> schedule(const tl::Program& sized, const Machine& machine,
                                    Diagnostics& diagnostics);

}  // namespace kw::sketch
