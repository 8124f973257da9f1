// A scheduled TL program as a CUDA file of its own, where there is no expert's text to change.
//
// The same table spells the statements as in lower(); what is added is what a reader wants: an
// opening comment that says what the kernel does and what it takes, blank lines between parts, and
// comments beside the arguments whose role is known. All of it is derived from the program, so none
// of it can disagree with the code.
//
// Lifting the text gives the program back (lower_alone in lower.h holds it to that).
#pragma once
#include <optional>
#include <string>

#include "tl/program.h"

namespace kw::lower {

// Reports lower.unspellable, at its place in the program, for each statement that has no CUDA
// spelling, and returns nothing then. `program` obeys the laws (tl::verify).
std::optional<std::string> print_cuda(const tl::Program& program, Diagnostics& diagnostics);

}  // namespace kw::lower
