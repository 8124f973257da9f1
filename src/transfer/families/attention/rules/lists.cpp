// Key blocks that keep nothing are not visited where it is the data that says so: a pre-pass lists
// the others.
//
//   lists attention_lists, threads 512, w of lists: ...      (transfer/editing/lists.h)
//   def key_blocks(c: Block, i0: index, rows: index) -> Keys:
//       let list = first_word(c)
//       return visits[list + where(rows == BM, 0, ...)], visits[list + 1]
//   def key_block(c: Block, n: index) -> index:
//       return visits[first_word(c) + ... + n]
//   with `visits: scratch[lists * list_words]`, and key_block(c, n) * BN for n * BN (visits.h)
//
// When     the form's keep predicate reads ints or bools at positions that depend on the row or the
//          key, and its intervals over a tile (tile_ranges.h) depend on what is read; or it reads
//          nothing, and its intervals leave out a fifth of the tiles that its ranges of keys
//          (ranges.h) visit: `i % 512 // 64 == j % 512 // 64`. Where the
//          kernel asks for the key range of fewer rows than a block has, these are a group of their
//          own: a warpgroup lets go by what only others need. A predicate that is the same for all
//          rows has one list for a batch entry, one that is not the same for all heads one for
//          each.
// Effect   none: blocks that keep nothing are left out, blocks that keep all are not masked.
#include "transfer/editing/lists.h"

#include <fmt/format.h>

#include "transfer/editing/terms.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/families/attention/visits.h"
#include "transfer/masks/key_ranges.h"
#include "transfer/masks/sparse.h"

namespace kw::transfer {
namespace {

// The number of rows that some warpgroup asks the key range of, where it is not the whole block's.
tl::ExprPtr rows_of_a_group(const Edit& edit) {
  for (const tl::ExprPtr& rows : rows_asked_for(edit.program, edit.facts))
    if (!tl::equal(rows, edit.facts.row_tile)) return rows;
  return nullptr;
}

ListPlan plan_of(Edit& edit) {
  const Facts& f = edit.facts;
  const bool by_row = spec::mentions(edit.keep, spec::Kind::index, "i");
  return {
      edit.keep,   f.queries,    f.keys,        f.row_tile,
      f.key_tile,  f.batch,      f.heads,       def_named(edit.program, f.keys_def)->params().at(0),
      f.row_field, f.head_field, f.batch_field, by_row ? rows_of_a_group(edit) : nullptr,
      f.keys_def};
}

// key_blocks, by what a list says of all rows of a block or of one group of them.
bool write_key_blocks(Edit& edit, const ListPlan& plan, const ListWriter& list) {
  tl::Stmt& def = *def_named(edit.program, edit.facts.keys_def);
  const std::string i0 = def.params().at(1).name, rows = def.params().at(2).name;
  const std::string here = edit.local("list"), tile = tl::print(plan.row_tile);
  std::string count = here;
  if (plan.group)
    count += fmt::format(" + where({0} == {1}, 0, 2 + ({2} - {3}.{4} * {1}) // {0})", rows, tile,
                         i0, plan.block.name, plan.row_field);
  return edit.replace(def.body,
                      {fmt::format("let {} = {}({})", here, list.first_word(), plan.block.name),
                       fmt::format("return {0}[{1}], {0}[{2} + 1]", list.visits(), count, here)});
}

}  // namespace

bool rule_lists(Edit& edit) {
  if (!edit.keep) return true;
  // Ranges that data places, more than two: nobody knows what lies between them.
  const bool scattered = spec::mentions(edit.keep, spec::Kind::read) &&
                         key_ranges(edit.keep, size(edit.facts.keys)).merged > 0;
  const bool data = reads_the_tile(edit.keep) || scattered;
  if (!data && !ranges_visit_too_much(edit.keep, size(edit.facts.keys), size(edit.facts.queries)))
    return true;
  const ListPlan plan = plan_of(edit);
  ListWriter list(edit, plan);
  if (!list.says_something()) return true;
  edit.listed = edit.blocks_differ = true;
  edit.result.notes.push_back(fmt::format(
      "which key blocks are visited {}: a pre-pass lists them before the kernel",
      data ? "depends on data" : "is said by intervals over tiles, no range of keys says it"));
  if (!list.write() || !write_key_blocks(edit, plan, list)) return false;
  edit.rows_differ = list.ends_with_row();
  return number_visits(edit, {fmt::format("return {}[{}({}) + {} + n]", list.visits(),
                                          list.first_word(), plan.block.name, list.header())});
}

}  // namespace kw::transfer
