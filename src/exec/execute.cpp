// Dispatch, generated from the table: a statement without a function does not link.
#include <fmt/format.h>

#include "exec/exec_ops.h"

namespace kw::exec {

Next execute(Machine& m, Agent& a, const tl::Stmt& s) {
  switch (s.op) {
#define KW_top(word)
#define KW_args(word)
#define KW_shared(word)
#define KW_body(word) \
  case tl::Op::word:  \
    return exec_##word(m, a, s);
#define OP(word, level, where, holds, cuda, tl, after) KW_##where(word)
#include "tl/ops.def"
    default:
      m.faults.raise("exec.name", &s, fmt::format("{} stands in a body", cite(s)));
      return Next::on;
  }
}

}  // namespace kw::exec
