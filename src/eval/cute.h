// A kernel in CuTe by an author, as far as it can be judged here: it compiles, or it does not.
#pragma once
#include <string>
#include <vector>

#include "author/conversation.h"
#include "eval/eval.h"

namespace kw::eval {

// The answer's text compiles for the target, without spills, into one kernel attention_fwd, or the
// refusal says what a compiler says. Accepted means no more than that. Reports what printing the
// example in CuTe does: cute.target where there are no atoms.
void ask_cute(const Writing& writing, author::Conversation& talk, Diagnostics& diagnostics);

// Whether the text has no preprocessor line but includes of <cute/...>, <cutlass/...>, <cuda/...>
// `pragma unroll`, `ifdef` and `endif`: what an author writes reads no other file. Refuses with
// cute.include.
bool only_cute_included(const std::string& text, propose::Refusal& refusal);

// That the folders have cute/tensor.hpp and cuda/std/... between them. Reports cute.headers.
bool has_cute_headers(const std::vector<std::string>& folders, Diagnostics& diagnostics);

}  // namespace kw::eval
