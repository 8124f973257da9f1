// Blocks of the output with the most keys come first, and blocks that read the same data side by
// side.
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
//
//   return w % rows, w // rows % H, w // rows // H
//     ->   return w % rows, w // rows // B, w // rows % B
//
// When     a number is read for every pair of a query and a key, and is the same for all batch
//          entries (bias[0, h, i, j]). The entries of one head follow each other then, in sections
//          too, and memory is asked for the number once and not B times.
// Blocks that are counted by more than rows, heads and batch entries (parts of the output's
// columns) keep their order. Effect   none: blocks are independent.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

// Whether e reads a number for every pair that is the same for all batch entries. Numbers for every
// distance, or for every pair of blocks, are few and stay in a cache.
bool shared_by_the_batch(const spec::ExprPtr& e) {
  using spec::Kind;
  if (!e) return false;
  const auto is_indexed_by = [&](const char* index) {
    return std::any_of(e->args.begin(), e->args.end(), [&](const spec::ExprPtr& a) {
      return a->kind == Kind::index && a->name == index;
    });
  };
  if (e->kind == Kind::read && is_indexed_by("i") && is_indexed_by("j") &&
      !spec::mentions(e, Kind::index, "b"))
    return true;
  return std::any_of(e->args.begin(), e->args.end(), shared_by_the_batch);
}

// Whether a block is a row of tiles of a head of a batch entry, and nothing more.
bool has_three_fields(Edit& edit) {
  const tl::Stmt& def = *def_named(edit.program, edit.facts.block_def);
  bool three = false;
  tl::walk(edit.program.body, [&](const tl::Stmt& s) {
    if (s.op == tl::Op::record && s.name() == def.result()) three = s.names().size() == 3;
  });
  return three;
}

// The record's values in the order of its fields. `head` counts the heads of all batch entries, or
// the batch entries of all heads.
std::string block_values(Edit& edit, const tl::Stmt& def, const std::string& row,
                         const std::string& head, bool batch_first) {
  const Facts& f = edit.facts;
  const std::string& inner = batch_first ? f.batch : f.heads;
  std::string out;
  tl::walk(edit.program.body, [&](const tl::Stmt& s) {
    if (s.op != tl::Op::record || s.name() != def.result()) return;
    for (const tl::Item& field : s.names()) {
      out += out.empty() ? "" : ", ";
      out += field.name == f.row_field                     ? row
             : (field.name == f.head_field) != batch_first ? head + " % " + inner
                                                           : head + " // " + inner;
    }
  });
  return out;
}

bool declare_section(Edit& edit, const std::string& name) {
  const Facts& f = edit.facts;
  return edit.insert(
      edit.behind_arguments(tl::Op::arg_size),
      fmt::format(
          "{}: size = heads_at_once({} * ({} + {}) * 2, ceil_div({}, {}), {} // {}, {} * {})", name,
          f.keys, f.dim, f.value_dim, f.queries, tl::print(f.row_tile), f.heads, f.groups, f.batch,
          f.heads));
}

bool longest_first(Edit& edit, bool batch_first) {
  const Facts& f = edit.facts;
  const std::string section = edit.fresh({"section"});
  if (!declare_section(edit, section)) return false;
  tl::Stmt& def = *def_named(edit.program, f.block_def);
  const std::string w = def.params().at(0).name;
  const std::string rows = edit.local("rows"), per = edit.local("per_section"), r = edit.local("r"),
                    head = edit.local("head");
  return edit.replace(
      def.body,
      {fmt::format("let {0} = ceil_div({1}, {2}), {3} = {4} * {0}, {5} = {6} % {3}", rows,
                   f.queries, tl::print(f.row_tile), per, section, r, w),
       fmt::format("let {0} = {1} // {2} * {3} + {4} % {3}", head, w, per, section, r),
       "return " + block_values(edit, def, fmt::format("{} - 1 - {} // {}", rows, r, section), head,
                                batch_first)});
}

bool entries_side_by_side(Edit& edit) {
  const Facts& f = edit.facts;
  tl::Stmt& def = *def_named(edit.program, f.block_def);
  const std::string w = def.params().at(0).name, rows = edit.local("rows");
  return edit.replace(
      def.body, {fmt::format("let {} = ceil_div({}, {})", rows, f.queries, tl::print(f.row_tile)),
                 "return " + block_values(edit, def, fmt::format("{} % {}", w, rows),
                                          fmt::format("{} // {}", w, rows), true)});
}

}  // namespace

bool rule_order(Edit& edit) {
  if (edit.target.keep_order || !has_three_fields(edit)) return true;
  const bool batch_first = shared_by_the_batch(edit.score) || shared_by_the_batch(edit.keep);
  if (edit.rows_differ) return longest_first(edit, batch_first);
  return !batch_first || entries_side_by_side(edit);
}

}  // namespace kw::transfer
