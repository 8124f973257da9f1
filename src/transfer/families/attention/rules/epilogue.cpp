// What becomes of the output before it is stored.
//
//   map acc[i, j] = acc[i, j] * inverse[i]   ->   map acc[i, j] = acc[i, j] * inverse[i] * gate
//   with `let gate = reciprocal(1.0 + exp2(-gates[c.h] * log2e))`
//                                            ->   map_real acc[i, j] from (i0, 0) = acc[i, j] *
//                                            reciprocal(i + 1.0)
//
// When     the epilogue is more than the output itself: a function of it, of the row's number, and
//          of what the batch entry and the head choose. What depends on the head dimension is
//          refused. Where a backward kernel needs the output as it was, which is stored behind that
//          map, the function is a map of its own behind it.
// Effect   one rounding in f32 for each operation, before the output is rounded.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/families/attention/rules/rules.h"
#include "transfer/families/attention/score_map.h"
#include "transfer/prune.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

bool is_element(const tl::Stmt& map) {
  const tl::ExprPtr& e = map.value();
  return e->kind == tl::ExprKind::index && tl::base_name(e) == tl::base_name(map.target());
}

// A map that leaves the output as it is goes.
void drop_identity(Edit& edit) {
  const tl::Stmt* map = output_map_of(edit.program);
  if (!map || !is_element(*map)) return;
  const std::string text = tl::print_head(*map);
  Pruner pruner(edit.program);
  pruner.remove([&](const tl::Stmt& s) { return tl::print_head(s) == text; });
}

// What the output alone needs is computed beside it: held from the block's start, it would take a
// register all along. `first`: the first of its lets.
void move_lets(Edit& edit, size_t first) {
  const Place end = block_lets_end(edit.program, edit.facts);
  std::vector<tl::Stmt>& block = *end.block;
  const tl::Stmt* map = output_map_of(edit.program);
  if (first >= end.at || map < block.data() || map >= block.data() + block.size()) return;
  const auto from = block.begin() + first, to = block.begin() + end.at;
  std::rotate(from, to, block.begin() + (map - block.data()));
}

// Behind the statement that stores the output as the epilogue takes it.
bool insert_behind_saved(Edit& edit, const tl::Stmt& map) {
  Place behind{nullptr, 0};
  tl::walk(edit.program.body, [&](tl::Stmt& s) {
    for (size_t n = 0; n < s.body.size(); ++n)
      if (s.body[n].op == tl::Op::store_accumulator) behind = {&s.body, n + 1};
  });
  return behind.block && edit.insert(behind, tl::print_head(map));
}

}  // namespace

bool rule_epilogue(Edit& edit) {
  if (!edit.epilogue || edit.epilogue->kind == Kind::output) {
    drop_identity(edit);
    return true;
  }
  if (spec::mentions(edit.epilogue, Kind::index, "d"))
    return edit.refuse("transfer.epilogue", edit.place(edit.form.epilogue),
                       fmt::format("the output is {}, another function for each of its elements",
                                   print(edit.form.epilogue)),
                       "supported is one for each row, such as o * scales[h]");
  tl::Stmt* map = output_map_of(edit.program);
  if (!map) return edit.refuse("transfer.kernel", {}, "this kernel has no map of its output", "");
  const std::string tile = tl::base_name(map->target());
  const tl::ExprPtr before =
      edit.form.saves ? tl::index(tl::name(tile), {tl::name("i"), tl::name("j")}) : map->value();
  const size_t first_let = block_lets_end(edit.program, edit.facts).at;
  const ExprPtr value = hoist_parts(edit, edit.epilogue, "gain", Hoist::sizes);
  if (!value) return false;
  const Coordinates coordinates = coordinates_of(value);
  if (!exact_coordinates(edit, coordinates)) return false;
  const auto body = edit.in_output_map(value, before, coordinates == Coordinates::real);
  if (!body) return false;
  const auto written = tl::parse_statement(
      map_text(coordinates, tile, tl::print(edit.facts.i0), "0", *body), edit.diagnostics);
  if (!written) return false;
  if (edit.form.saves && !insert_behind_saved(edit, *written)) return false;
  if (!edit.form.saves) *output_map_of(edit.program) = *written;  // the lets may have moved it
  move_lets(edit, first_let);
  return true;
}

}  // namespace kw::transfer
