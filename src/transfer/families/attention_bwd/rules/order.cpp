// Blocks of keys with the most queries come first.
//
//   let keys = ceil_div(N, BN)
//   return w % keys, w // keys % G, w // keys // G
//     ->   let keys = ceil_div(N, BN), per_section = section * keys, r = w % per_section
//          let head = w // per_section * section + r % section
//          return r // section, head % G, head // G
//   with `section: size = heads_at_once(M * D * 4 * (H // G), ceil_div(N, BN), 1, B * G)`
//
// When     the first query of a block of keys moves with the block, and the last does not: causal
//          masks. Sections of as many key heads as have the rows of their queries in L2 follow each
//          other; within one, the longest blocks of all heads come first, so that the last ones to
//          run are short.
// Effect   none: blocks are independent, but for the order in which dq is added up.
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {

bool rule_order(Edit& edit) {
  if (!edit.fewer_queries || edit.target.keep_order) return true;
  std::vector<tl::Stmt>& args = edit.program.find(tl::Op::args)->body;
  size_t at = 0;
  for (size_t n = 0; n < args.size(); ++n)
    if (args[n].op == tl::Op::arg_size) at = n + 1;
  auto section = tl::parse_statement(
      "section: size = heads_at_once(M * D * 4 * (H // G), ceil_div(N, BN), 1, B * G)",
      edit.diagnostics);
  if (!section) return false;
  args.insert(args.begin() + static_cast<ptrdiff_t>(at), std::move(*section));
  for (tl::Stmt& s : edit.program.body)
    if (s.op == tl::Op::def && s.name() == "block_of")
      return edit.replace(
          s.body, {"let keys = ceil_div(N, BN), per_section = section * keys, r = w % per_section",
                   "let head = w // per_section * section + r % section",
                   "return r // section, head % G, head // G"});
  return edit.refuse("transfer.kernel", {}, "this kernel has no function block_of",
                     "kernels/sm90/attention_bwd.cu has one");
}

}  // namespace kw::transfer::bwd
