// The laws of a target: which statements its hardware has. A program has no target of its own;
// whoever compiles it for one asks.
#pragma once
#include <string_view>

#include "tl/program.h"

namespace kw::tl {

// Whether a program that obeys the laws (verify) does so on this target: sm_75 has f16 alone and no
// asynchronous copies, only sm_90a what is Hopper's own. Reports target.C1 to C3 at the first
// statement that breaks each, with what to use instead. A target that is not in support/targets.h
// passes.
bool verify_for(const Program& program, std::string_view target, Diagnostics& diagnostics);

}  // namespace kw::tl
