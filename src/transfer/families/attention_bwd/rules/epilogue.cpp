// What becomes of the output behind the product with v: its gradient is multiplied by what that
// changes by, once, before the kernel.
//
//   d_o: tiled in element[B, H, M, D]     ->   d_o: tiled scratch element[B, H, P, D]
//   for b, h, r in each_row(sum_dq, w):   ->   for b, h, r in each_row(sum_dq, w):
//                                                  let gain = reciprocal(1.0 + exp2(...))
//                                                  write_row d_o[b, h, r] over j < D =
//                                                      where(r < M, do_rows[b, h, r, j] * gain,
//                                                      0.0)
//       dot_row dot over D =                       sum dot over j < D =
//           o * do_rows[b, h, r]                       o[b, h, r, j] * d_o[b, h, r, j]
//
// When     the epilogue is more than the output itself.
// Effect   a row of the output's gradient is rounded to the operands' type, as PyTorch rounds it;
//          delta is of the rounded row, so that what cancels in `dp - delta` still does.
#include <fmt/format.h>

#include "transfer/editing/declarations.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using spec::Kind;
using tl::Op;
using tl::Stmt;

// The kernel's tiles are of scratch, with rows for whole blocks.
bool declare_scratch(Edit& edit) {
  std::vector<Stmt>& args = edit.program.find(Op::args)->body;
  for (size_t n = 0; n < args.size(); ++n) {
    if (args[n].op != Op::arg_tiled && args[n].op != Op::arg_tensor) continue;
    const bool tiled = args[n].op == Op::arg_tiled;
    const size_t dropped =
        std::erase_if(args[n].names(), [](const tl::Item& d) { return d.name == "d_o"; });
    if (dropped == 0) continue;
    if (args[n].names().empty()) args.erase(args.begin() + std::ptrdiff_t(n));
    std::erase_if(edit.result.bindings, [](const Binding& b) { return b.argument == "d_o"; });
    return edit.insert(edit.behind_arguments(Op::arg_tensor),
                       fmt::format("d_o: {}scratch element[B, H, P, D]", tiled ? "tiled " : ""));
  }
  return edit.refuse("transfer.kernel", {}, "this kernel has no tiles of d_o", "");
}

// Of the pre-pass: what does not change along a row is computed before it.
bool write_rows(Edit& edit) {
  std::vector<Stmt>* body = edit.rows();
  const auto by = edit.of_row(edit.of_epilogue);
  if (!body) return edit.refuse("transfer.kernel", {}, "this kernel has no pre-pass over rows", "");
  if (!by) return false;
  if (edit.form.D.constant != edit.form.Dv.constant)
    return edit.refuse("transfer.head_dim", edit.place(nullptr),
                       fmt::format("what becomes of the output's rows, of {} columns, is a matter "
                                   "of a pass over rows of {}",
                                   edit.form.Dv.constant, edit.form.D.constant),
                       "supported where q, k and v have as many columns");
  for (Stmt& s : *body) {
    if (s.op == Op::dot_row) {  // of a row that this pass writes, and of which a lane reads its own
      const auto sum = tl::parse_statement(
          fmt::format("sum {} over j < D = o[b, h, r, j] * do_rows[b, h, r, j]", s.names()[0].name),
          edit.diagnostics);
      if (!sum) return false;
      s = *sum;
    }
    if (s.op == Op::sum)
      s.value() = tl::rewrite(s.value(), [](const tl::ExprPtr& e) -> tl::ExprPtr {
        return e->is_name("do_rows") ? tl::name("d_o") : nullptr;
      });
  }
  std::vector<std::string> lines;
  std::string factor = "(" + *by + ")";
  if (!spec::mentions(edit.of_epilogue, Kind::output)) {
    factor = edit.local("gain");
    const bool of_row =
        spec::mentions(edit.of_epilogue, Kind::index, "i");  // read where there is one
    lines.push_back(fmt::format(
        fmt::runtime(of_row ? "let {} = where(r < M, {}, 0.0)" : "let {} = {}"), factor, *by));
  }
  lines.push_back(fmt::format(
      "write_row d_o[b, h, r] over j < D = where(r < M, do_rows[b, h, r, j] * {}, 0.0)", factor));
  return edit.insert({body, 0}, lines);
}

}  // namespace

bool rule_epilogue(Edit& edit) {
  if (!edit.of_epilogue) return true;
  if (!spec::takes_saved(edit.form))
    edit.result.bindings.push_back(
        {"do_rows", spec::Gradients::kOfOutput, places("bhid", edit.form.gradients->dims)});
  return write_rows(edit) && declare_scratch(edit);
}

}  // namespace kw::transfer::bwd
