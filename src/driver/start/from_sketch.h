// A kernel to start from where no expert has written one: a sketch, sized and scheduled for the
// target, printed as CUDA. The stages after it take the text for an expert's.
//
// A file of somebody's own is taken at its level: a sketch is sized, a sized program scheduled, a
// scheduled one is printed. One that computes plain attention is changed by the rules. One with a
// mask or scores of its own is taken for the function itself, and no rule touches it: whether it
// is, the check says.
#pragma once
#include <string>

#include "driver/environment/tools.h"
#include "operator/form.h"
#include "timeline/gpu.h"

namespace kw::driver {

struct Sketched {
  SourcePtr text;
  std::string said;    // for the stage's line
  bool sized = false;  // by its author, whose constants stay: no shipped tiles come in their place
  bool plain = true;   // attention, for the rules to change; else the function itself
};

// The first GPU of gpus/ that runs the target. Reports sketch.gpu where none does.
std::optional<timeline::Gpu> gpu_for(const Home& home, const std::string& target,
                                     Diagnostics& diagnostics);

// Whether some expert's text is for the target; false also for a target that nobody knows.
bool has_expert(const Tools& tools, const std::string& target);

// From the program in `file`; empty: from the sketch of sketches/ for the form's family. For the
// first GPU of gpus/ that runs the target. On sm_90a operands of a family that the copy engine's
// schedule is not for are brought by the threads' own asynchronous copies. Reports sketch.family
// where there is no sketch, sketch.gpu where no GPU runs the target, sketch.read for a file that is
// no text that can be read, and what tl::parse(), the laws, size(), schedule() and print_cuda()
// report.
std::optional<Sketched> from_sketch(const Tools& tools, const spec::Form& form,
                                    const std::string& target, const std::string& file,
                                    Diagnostics& diagnostics);

}  // namespace kw::driver
