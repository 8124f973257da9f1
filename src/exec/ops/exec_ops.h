// The functions that run statements: exec_<word> for every row of ops.def that stands in a body.
#pragma once
#include "exec/machine.h"

namespace kw::exec {

#define KW_top(word)
#define KW_args(word)
#define KW_shared(word)
#define KW_body(word) Next exec_##word(Machine& m, Agent& a, const tl::Stmt& s);
#define OP(word, level, where, holds, ...) KW_##where(word)
#include "tl/ops.def"
#undef KW_top
#undef KW_args
#undef KW_shared
#undef KW_body

}  // namespace kw::exec
