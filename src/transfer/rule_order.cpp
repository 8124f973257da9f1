// Blocks of the output with the most keys come first.
//
//   let rows = ceil_div(M, BM)
//   return w % rows, w // rows % H, w // rows // H
//     ->   let rows = ceil_div(M, BM), per_section = section * rows, r = w % per_section
//          let head = w // per_section * section + r % section
//          return rows - 1 - r // section, head % H, head // H
//   with `section: size = heads_at_once(N * (D + V) * 2, ceil_div(M, BM), H // G, B * H)`
//
// When     the key range depends on the row (rule_keys). Sections of as many heads as have their
//          keys and values in L2 follow each other; within one, the longest blocks of all its heads
//          come first, so that the last ones to run are short. A section of few blocks ends with
//          multiprocessors that wait for others, so a short one takes more heads. Where all blocks
//          are alike the plain order is 5 % faster (full attention), and where they are not this
//          one is 12 to 15 % (causal).
// Effect   none: blocks are independent.
#include <fmt/format.h>

#include "transfer/rules.h"

namespace kw::transfer {
namespace {

// The record's values in the order of its fields.
std::string block_values(Edit& edit, const tl::Stmt& def, const std::string& row,
                         const std::string& head) {
  const Facts& f = edit.facts;
  std::string out;
  tl::walk(edit.program.body, [&](const tl::Stmt& s) {
    if (s.op != tl::Op::record || s.word("n") != def.word("r")) return;
    for (const tl::Item& field : s.items("d")) {
      out += out.empty() ? "" : ", ";
      out += field.name == f.row_field    ? row
             : field.name == f.head_field ? head + " % " + f.heads
                                          : head + " // " + f.heads;
    }
  });
  return out;
}

bool declare_section(Edit& edit, const std::string& name) {
  const Facts& f = edit.facts;
  std::vector<tl::Stmt>& args = args_of(edit.program).body;
  size_t at = 0;
  for (size_t n = 0; n < args.size(); ++n)
    if (args[n].op == tl::Op::arg_size) at = n + 1;
  return edit.insert(
      {&args, at},
      fmt::format(
          "{}: size = heads_at_once({} * ({} + {}) * 2, ceil_div({}, {}), {} // {}, {} * {})", name,
          f.keys, f.dim, f.value_dim, f.queries, tl::print(f.row_tile), f.heads, f.groups, f.batch,
          f.heads));
}

}  // namespace

bool rule_order(Edit& edit) {
  if (!edit.rows_differ) return true;
  const Facts& f = edit.facts;
  const std::string section = edit.fresh({"section"});
  if (!declare_section(edit, section)) return false;
  tl::Stmt& def = *def_named(edit.program, f.block_def);
  const std::string w = def.items("ps").at(0).name;
  const std::string rows = edit.local("rows"), per = edit.local("per_section"), r = edit.local("r"),
                    head = edit.local("head");
  return edit.replace(
      def.body,
      {fmt::format("let {0} = ceil_div({1}, {2}), {3} = {4} * {0}, {5} = {6} % {3}", rows,
                   f.queries, tl::print(f.row_tile), per, section, r, w),
       fmt::format("let {0} = {1} // {2} * {3} + {4} % {3}", head, w, per, section, r),
       "return " +
           block_values(edit, def, fmt::format("{} - 1 - {} // {}", rows, r, section), head)});
}

}  // namespace kw::transfer
