// Tiles of rows that lie in pages: tma_load_pages.
//
// What a tile is of, its batch entry, head and rows, is said as if rows lay side by side: so
// products, maps and readings see no difference. Where they lie is the table's, which the copy
// engine does not check: of a page that the tensor does not have come zeros.
#include <fmt/format.h>

#include <algorithm>

#include "exec/copies.h"

namespace kw::exec {

using tl::Stmt;

namespace {
// The rows of tensor[b, h, r] that lie in pages: row r is row r % rows of page table[b, r / rows].
Tile fetch_pages(const TileCopy& copy, const Tensor& table, int64_t rows) {
  TileCopy one = copy;
  one.place.outer[0] = 0;
  Tile tile = copy.to.slot->tile;
  std::fill(tile.x.begin(), tile.x.end(), 0.0f);
  std::fill(tile.e.begin(), tile.e.end(), exact::Element());
  const int64_t piece = std::min<int64_t>(rows, tile.rows);
  for (int64_t r = 0; r < tile.rows; r += piece) {
    const int64_t entry = (copy.place.first + r) / rows;
    if (entry >= table.shape[1]) break;
    const auto page = int64_t(table.values[copy.place.outer[0] * table.shape[1] + entry]);
    if (page < 0 || page >= copy.tensor->data.shape[0]) continue;
    one.place.outer[0] = page;
    one.place.first = (copy.place.first + r) % rows;
    const Tile part = fetch(one);  // whose first rows are the piece's
    if (tile.e.empty())
      std::copy_n(part.x.begin(), piece * tile.columns, tile.x.begin() + r * tile.columns);
    else
      std::copy_n(part.e.begin(), piece * tile.columns, tile.e.begin() + r * tile.columns);
  }
  tile.defined = true;
  tile.of_rows = copy.place;
  tile.of_columns = {true, "", {0, 0}, copy.column};
  return tile;
}
}  // namespace

Next exec_tma_load_pages(Machine& m, Agent& a, const Stmt& s) {
  const auto table = m.tensors.find(word_of(s, tl::Hole::table));
  if (table == m.tensors.end() || table->second.writes || table->second.data.rank() != 2) {
    m.faults.raise("exec.name", &s, fmt::format("{}: the table is no tensor to read", cite(s)));
    return Next::on;
  }
  const TileCopy copy = tile_copy_of(m, a, s, &table->second.data);
  if (!copy.to.slot || !may_fill(m, s, *copy.to.slot)) return Next::on;
  const int64_t rows = integer_of(context(m, a, s), s.rows());
  const int64_t piece = std::min<int64_t>(rows, copy.to.slot->tile.rows);
  if (rows < 1 || copy.tensor->data.shape[2] != rows || copy.place.first % piece != 0) {
    m.faults.raise(
        "exec.bounds", &s,
        fmt::format("{}: row {} begins no page of {} rows, of which {} has {}, nor a tile of them",
                    cite(s), copy.place.first, rows, copy.place.tensor,
                    copy.tensor->data.shape[2]));
    return Next::on;
  }
  copy.to.slot->tile = fetch_pages(copy, table->second.data, rows);
  copy.to.slot->parts = copy.to.slot->parts_due = 0;
  announce(m, a, s, copy);
  return Next::on;
}

}  // namespace kw::exec
