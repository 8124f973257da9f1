// The gradient of the log-sums that the function returns beside its output.
//
//   write_value delta[b, h, r] = -dot
//                       ->   write_value delta[b, h, r] = where(r < M, d_lse[b, h, r], 0.0) - dot
//
// When     the function returns them. A log-sum changes with a score by the score's weight: what is
//          added to the gradients of all weights of a row is the gradient of its log-sum.
// Effect   none: one addition in f32.
#include <fmt/format.h>

#include "transfer/editing/declarations.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {

bool rule_log_sum(Edit& edit) {
  using spec::Gradients;
  const std::vector<std::string>& dims = edit.form.gradients->log_sum_dims;
  if (dims.empty()) return true;
  tl::Stmt* delta = edit.written_of_row("delta");
  const std::string name = "d_lse";
  if (!delta || declaration_of_argument(edit.program, name))
    return edit.refuse("transfer.kernel", {},
                       delta ? "this kernel has an argument d_lse of its own"
                             : "this kernel has no pre-pass that writes delta",
                       "kernels/sm90/attention_bwd.cu is one that has it");
  delta->value() = tl::parse_expr(
      fmt::format("where(r < M, {}[b, h, r], 0.0) + ({})", name, tl::print(delta->value())),
      edit.diagnostics);
  if (!delta->value()) return false;
  edit.result.bindings.push_back({name, Gradients::kOfLogSum, places("bhi", dims)});
  return edit.insert(edit.behind_arguments(tl::Op::arg_tensor),
                     fmt::format("{}: in f32[B, H, M]", name));
}

}  // namespace kw::transfer::bwd
