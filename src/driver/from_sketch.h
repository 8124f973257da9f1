// A kernel to start from where no expert has written one: a sketch, sized and scheduled for the
// target, printed as CUDA. The stages after it take the text for an expert's.
#pragma once
#include <string>

#include "driver/tools.h"
#include "spec/form.h"
#include "timeline/gpu.h"

namespace kw::driver {

struct Sketched {
  SourcePtr text;
  std::string said;  // for the stage's line
};

// The first GPU of gpus/ that runs the target. Reports sketch.gpu where none does.
std::optional<timeline::Gpu> gpu_for(const Home& home, const std::string& target,
                                     Diagnostics& diagnostics);

// Whether some expert's text is for the target; false also for a target that nobody knows.
bool has_expert(const Tools& tools, const std::string& target);

// From sketches/latent.tl where the values are columns of the keys, else sketches/attention.tl; for
// the first GPU of gpus/ that runs the target. On sm_90a operands of e4m3, and values that are
// columns of the keys, are brought by the threads' own asynchronous copies: the copy engine converts
// nothing, and its schedule loads whole rows. Reports sketch.gpu where no GPU runs the target, and
// what size(), schedule() and print_cuda() report.
std::optional<Sketched> from_sketch(const Tools& tools, const spec::Form& form,
                                    const std::string& target, Diagnostics& diagnostics);

}  // namespace kw::driver
