// Rows of q, k and v that change before their product: the pre-pass changes them, as the forward
// rule has it (attention/rules/rows.cpp), and a pass behind the kernel takes the gradients of what
// they became back to theirs.
//
//   dk: tiled out element[B, G, N, D]    ->   dk: out element[B, G, N, D]
//                                             dk_rows: tiled scratch element[B, G, N, D]
//   tma_store k_s[r][u] -> dk[...]       ->   tma_store k_s[r][u] -> dk_rows[...]
//   round_sums sum_dq * scale -> dq      ->   round_sums sum_dq * scale -> dq_rows
//                                             rows attention_bwd_adjoint, threads 256, w of ...:
//                                                 for b, h, r in each_row(dk, w):
//                                                     write_row dk[b, h, r] over j < D =
//                                                         dk_rows[b, h, r, j] * cos[r, j] + ...
//
// When     the form's gradients have them (operator/families/attention_bwd/adjoint.h).
// Effect   a row of gradients is rounded to the operands' type twice, as PyTorch rounds it.
#include "transfer/editing/rows.h"

#include <fmt/format.h>

#include "transfer/editing/declarations.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {

using tl::Op;
using tl::Stmt;

bool rule_rows(Edit& edit) {
  if (edit.of_rows.empty()) return true;
  Stmt* before = edit.program.find(Op::rows);
  const Stmt* after = edit.program.find(Op::after);
  if (!before || !after)
    return edit.refuse("transfer.kernel", {}, "this kernel has no passes before and behind it",
                       "kernels/sm90/attention_bwd.cu has them");
  std::vector<std::string> loops, counts;
  RowLoops first(edit, before->index()), last(edit, edit.local("w"));
  for (const Edit::OfRows& o : edit.of_rows) {
    const char* row = o.operand ? "j" : "i";
    const bool own = o.operand == 2 && constant_named(edit.program, "V");
    const char* columns = own ? "V" : "D";
    const auto made = first.loop(o.rows, columns, o.before, row),
               back = last.loop(o.gradient, columns, o.behind, row);
    if (!made || !back || !edit.insert({&before->body, before->body.size()}, *made) ||
        !load_rows(edit, o.argument, edit.form.dtype, o.rows) ||
        !store_rows(edit, o.gradient, o.of_rows))
      return false;
    loops.push_back(*back);
    const std::string count = o.operand ? "G * N" : "H * M";
    if (counts.empty() || counts.back() != count) counts.push_back(count);
  }
  const std::string name = edit.fresh({edit.program.kernel()->name() + "_adjoint"});
  return edit.insert({&edit.program.body, edit.program.body.size()},
                     last.pass(name, kLetters.batch, counts, loops));
}

}  // namespace kw::transfer::bwd
