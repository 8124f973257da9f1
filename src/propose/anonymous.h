// The user's names stay here.
//
// A prompt is read by a machine that cannot tell what is said to it from what is only shown to it:
// a name or a comment in the user's file may read like an instruction. So a proposer sees the form
// (operator/form.h), which has no text of the user's but names, and sees it under names of ours:
// v0, v1, ... for the arguments, in their order. The loop checks under these names too, since what
// a check says goes back into a prompt. An accepted program gets the user's names at the end.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "operator/capture/capture.h"
#include "tl/program.h"

namespace kw::propose {

// The capture with v0, v1, ... for its arguments, and without any place in the user's file.
spec::Capture anonymous(const spec::Capture& capture);

// The program with the user's names for what it calls v0, v1, ...; a name that is no name in a
// kernel, or is one of the program's own, gets spec::kGiven as the rules' arguments do.
tl::Program with_names(tl::Program program, const spec::Form& form);

// What a proposer is told of the function: its type and sizes, arguments, the form as printed, and
// which argument the kernel's q, k and v are. `anonymous` is a form of an anonymous capture.
std::string describe(const spec::Form& anonymous);

}  // namespace kw::propose
