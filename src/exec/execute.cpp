// Dispatch, generated from the table: a statement without a function does not link.
#include <fmt/format.h>

#include "exec/ops/exec_ops.h"

namespace kw::exec {

Next execute(Machine& m, Agent& a, const tl::Stmt& s) {
  switch (s.op) {
#define KW_top(word) \
  case tl::Op::word: \
    break;
#define KW_args(word) KW_top(word)
#define KW_shared(word) KW_top(word)
#define KW_body(word) \
  case tl::Op::word:  \
    return exec_##word(m, a, s);
#define OP(word, level, where, holds, ...) KW_##where(word)
#include "tl/ops.def"
#undef KW_top
#undef KW_args
#undef KW_shared
#undef KW_body
  }
  m.faults.raise("exec.name", &s, fmt::format("{} stands in a body", cite(s)));
  return Next::on;
}

}  // namespace kw::exec
