// Blocks of keys with the most queries come first.
//
//   let keys = ceil_div(N, BN)
//   return w % keys, w // keys % G, w // keys // G
//     ->   let keys = ceil_div(N, BN), per_section = section * keys, r = w % per_section
//          let head = w // per_section * section + r % section
//          return r // section, head % G, head // G
//   with `section: size = heads_at_once(M * D * 8 * (H // G), ceil_div(N, BN), 1, B * G)`
//
// When     the first query of a block of keys moves with the block, and the last does not: causal
//          masks. Sections of as many key heads as have the rows of their queries in L2, and the
//          sums that become dq, follow each other; within one, the longest blocks of all heads come
//          first, so that the last ones to run are short. And where blocks take turns (turns.cpp),
//          of any mask: so a turn goes round the blocks of few heads at once. There the sums are
//          not counted (4 in place of 8 bytes): with half as many heads, blocks would wait for more
//          of their own.
// Effect   none: blocks are independent, but for the order in which dq is added up.
#include <fmt/format.h>

#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {

bool rule_order(Edit& edit) {
  if ((!edit.fewer_queries && !edit.target.deterministic) || edit.target.keep_order) return true;
  const std::string section = edit.fresh({"section"}), per = edit.local("per_section"),
                    head = edit.local("head");
  if (!edit.insert(
          edit.behind_arguments(tl::Op::arg_size),
          fmt::format("{}: size = heads_at_once(M * D * {} * (H // G), ceil_div(N, BN), 1, B * G)",
                      section, edit.target.deterministic ? 4 : 8)))
    return false;
  for (tl::Stmt& s : edit.program.body)
    if (s.op == tl::Op::def && s.name() == "block_of")
      return edit.replace(
          s.body,
          {fmt::format("let keys = ceil_div(N, BN), {0} = {1} * keys, r = w % {0}", per, section),
           fmt::format("let {0} = w // {1} * {2} + r % {2}", head, per, section),
           fmt::format("return r // {0}, {1} % G, {1} // G", section, head)});
  return edit.refuse("transfer.kernel", {}, "this kernel has no function block_of",
                     "kernels/sm90/attention_bwd.cu has one");
}

}  // namespace kw::transfer::bwd
