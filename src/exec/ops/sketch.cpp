// Statements of a sketch that have no meaning of their own yet: which memory a copy goes through,
// and which layout a computation has, is decided when the program is sized. Running them is
// refused.
#include <fmt/format.h>

#include "exec/ops/exec_ops.h"

namespace kw::exec {

namespace {

Next refuse(Machine& m, const tl::Stmt& s, const char* lacks) {
  m.faults
      .raise("exec.sketch", &s, fmt::format("{} is a sketch: it does not say {}", cite(s), lacks))
      .hint = "size the program before running it";
  return Next::on;
}

}  // namespace

Next exec_compute(Machine& m, Agent&, const tl::Stmt& s) {
  return refuse(m, s, "in which layout it computes");
}
Next exec_copy(Machine& m, Agent&, const tl::Stmt& s) {
  return refuse(m, s, "through which memory it goes");
}

}  // namespace kw::exec
