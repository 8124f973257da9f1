// Copies: global to shared and back by the copy engine, shared to registers and back.
//
// The copy engine's rows past the end of a tensor are zero on the way in and dropped on the way
// out. A copy's data is taken when it is asked for (inputs never change) and arrives when somebody
// waits for it.
#include "exec/copies.h"

#include <fmt/format.h>

#include <algorithm>

#include "exec/alignment.h"

namespace kw::exec {

using tl::Stmt;

namespace {

struct Coordinates {
  Global* tensor = nullptr;  // null after a fault
  std::string name;
  std::array<int64_t, 2> outer = {0, 0};  // indices of the dimensions before rows
  int64_t row = 0, column = 0;
};

// tensor[b, h, r] of a copy: the first two must exist, the row must not be negative.
// Of pages the first is one of the table's.
Coordinates coordinates_of(Machine& m, Agent& a, const Stmt& s, bool writes,
                           const Tensor* table = nullptr) {
  const std::string name = word_of(s, tl::Hole::tensor);
  const auto it = m.tensors.find(name);
  const auto suits = [&](const Global& g) {
    if (!writes) return !g.writes;
    return s.op == tl::Op::tma_add || s.op == tl::Op::add_tile
               ? g.scratch
               : g.writes || (leaves_for_a_pass(s.op) && g.scratch);
  };
  if (it == m.tensors.end() || !suits(it->second) || it->second.data.rank() < 3) {
    m.faults.raise("exec.name", &s,
                   fmt::format("{} is not a tensor to {}", name, writes ? "write" : "read"));
    return {};
  }
  const Context c = context(m, a, s);
  Coordinates at{&it->second,
                 name,
                 {integer_of(c, s.batch()), integer_of(c, s.head())},
                 integer_of(c, s.row())};
  if (s.has(tl::Hole::column)) at.column = integer_of(c, s.column());
  std::vector<int64_t> shape = it->second.data.shape;
  if (table) shape[0] = table->shape[0];
  const auto& [first, second] = at.outer;
  if (first < 0 || first >= shape[0] || second < 0 || second >= shape[1] || at.row < 0 ||
      at.column < 0 || at.column % 8 != 0) {
    m.faults.raise("exec.bounds", &s,
                   fmt::format("{}[{}, {}, {}, {}] is outside [{}]", name, first, second, at.row,
                               at.column, fmt::join(shape, ", ")));
    return {};
  }
  return at;
}

// Where row `row` starts in the tensor's values.
int64_t offset_of(const Tensor& t, const Coordinates& at, int64_t row) {
  const auto& n = t.shape;
  const int64_t columns = n.size() > 3 ? n[3] : 1;
  return ((at.outer[0] * n[1] + at.outer[1]) * n[2] + row) * columns;
}

// Element k of a tile or row vector.
template <class Numbers>
void write_element(Machine& m, const Stmt& s, Global& g, int64_t offset, const Numbers& from,
                   size_t k) {
  note_written(m, s, g.written[offset]);
  if (m.algebra)
    g.exact[offset] = from.e[k];
  else
    g.data.values[offset] = round_to(g.data.dtype, from.x[k]);
}

float round_element(Dtype dtype, float x) {
  return dtype == Dtype::bf16 ? bf16_round(x) : static_cast<float>(round_to(dtype, x));
}

// Rounded to the tile's type; the exact reading does not round.
void store_element(Tile& to, size_t k, const Tile& from, size_t n) {
  if (to.e.empty())
    to.x[k] = round_element(to.dtype, from.x[n]);
  else
    to.e[k] = from.e[n];
}

bool same_shape(Machine& m, const Stmt& s, const Tile& a, const Tile& b) {
  if (a.rows == b.rows && a.columns == b.columns) return true;
  m.faults.raise(
      "exec.shape", &s,
      fmt::format("{}: {} x {} and {} x {} differ", cite(s), a.rows, a.columns, b.rows, b.columns));
  return false;
}

}  // namespace

bool columns_are_panels(Machine& m, const Stmt& s, const Tile& tile, int64_t column,
                        int64_t columns, bool or_half) {
  const int panel = tile.columns % 64 == 0 ? 64 : 32;
  const int64_t unit = or_half && columns * 2 == panel ? columns : panel;
  if (column >= 0 && column + columns <= tile.columns && column % unit == 0) return true;
  m.faults.raise("exec.bounds", &s,
                 fmt::format("{}: columns {} to {} of {}, which has panels of {}", cite(s), column,
                             column + columns - 1, tile.columns, panel));
  return false;
}

bool may_fill(Machine& m, const Stmt& s, const SharedSlot& slot) {
  const char* why = slot.arriving   ? "another copy into it is on its way"
                    : slot.products ? "a product reads it"
                    : slot.stores   ? "a store reads it"
                                    : nullptr;
  if (!why) return true;
  Diagnostic& d =
      m.faults.raise("exec.overwrite", &s, fmt::format("{} fills a slot in use: {}", cite(s), why));
  const Stmt* other = slot.arriving ? slot.writer : slot.reader;
  if (other) d.notes.push_back({"in use by " + cite(*other), other->span});
  return false;
}

TileCopy tile_copy_of(Machine& m, Agent& a, const Stmt& s, const Tensor* table) {
  const Coordinates from = coordinates_of(m, a, s, false, table);
  TileCopy copy;
  copy.tensor = from.tensor;
  copy.place = {true, from.name, from.outer, from.row};
  copy.to = shared_of(m, a, s, tl::Hole::dst);
  copy.full = barrier_of(m, a, s, tl::Hole::barrier);
  const auto refuse = [&](const char* code, const std::string& message) {
    if (!message.empty()) m.faults.raise(code, &s, message);
    copy.to.slot = nullptr;
    return copy;
  };
  if (!from.tensor || !copy.to.slot || !copy.full.barriers) return refuse("", "");
  const Tile& tile = copy.to.slot->tile;
  const Tensor& t = from.tensor->data;
  const bool whole_rows = !s.has(tl::Hole::column);
  if (!whole_rows) copy.column = from.column;
  if (t.rank() != 4 || (whole_rows && t.shape[3] != tile.columns) || t.dtype != tile.dtype)
    return refuse("exec.shape",
                  fmt::format("{} has rows of {} {} and the tile {} {}", from.name, t.shape.back(),
                              name(t.dtype), tile.columns, name(tile.dtype)));
  if (!a.guarded() && a.thread < 0)
    return refuse("exec.sync", fmt::format("{} is run by every thread of a warpgroup", cite(s)));
  if (!rows_are_chunks(m, s, *from.tensor)) return refuse("", "");
  return copy;
}

TileCopy warpgroup_copy_of(Machine& m, Agent& a, const Stmt& s, tl::Hole tile, bool out) {
  const Coordinates at = coordinates_of(m, a, s, out);
  TileCopy copy{
      at.tensor, {true, at.name, at.outer, at.row}, shared_of(m, a, s, tile), {}, at.column};
  const bool whole_rows = !s.has(tl::Hole::column);
  if (!at.tensor || !copy.to.slot) {
    copy.to.slot = nullptr;
    return copy;
  }
  const Tile& held = copy.to.slot->tile;
  const Tensor& t = at.tensor->data;
  if (t.rank() == 4 && (!whole_rows || t.shape[3] == held.columns) && t.dtype == held.dtype &&
      a.thread < 0 && !a.guarded()) {
    if (!rows_are_chunks(m, s, *at.tensor)) copy.to.slot = nullptr;
    return copy;
  }
  m.faults.raise("exec.shape", &s,
                 fmt::format("{}: rows of {} and {} columns, by {}", cite(s), t.shape.back(),
                             held.columns, a.guarded() ? "one thread" : "a warpgroup"));
  copy.to.slot = nullptr;
  return copy;
}

namespace {
// How many of the tile's columns the tensor has: all, but at its right edge.
int64_t columns_inside(const TileCopy& copy, const Tensor& t) {
  const int64_t left = std::max<int64_t>(t.shape[3] - copy.column, 0);
  return std::min<int64_t>(copy.to.slot->tile.columns, left);
}
}  // namespace

// A warp has four rows of every 16 * by: eight threads copy a row.
void write_rows(Machine& m, const Agent& a, const Stmt& s, const TileCopy& copy, int64_t by) {
  const Coordinates to{nullptr, "", copy.place.outer, copy.place.first};
  Global& g = m.tensors.at(copy.place.tensor);
  const Tile& tile = copy.to.slot->tile;
  const int64_t columns = columns_inside(copy, g.data);
  for (int r = 0; r < tile.rows && to.row + r < g.data.shape[2]; ++r)
    for (int c = 0; c < columns && (by == 1 || r / 16 % by == a.warpgroup); ++c)
      write_element(m, s, g, offset_of(g.data, to, to.row + r) + copy.column + c, tile,
                    size_t(r) * tile.columns + c);
}

Tile fetch(const TileCopy& copy) {
  Tile tile = copy.to.slot->tile;
  const Tensor& t = copy.tensor->data;
  const bool exact = !tile.e.empty();
  const int64_t columns = columns_inside(copy, t);
  const Coordinates from{nullptr, "", copy.place.outer, copy.place.first};
  std::fill(tile.x.begin(), tile.x.end(), 0.0f);
  std::fill(tile.e.begin(), tile.e.end(), exact::Element());
  for (int r = 0; r < tile.rows && from.row + r < t.shape[2]; ++r) {
    const int64_t offset = offset_of(t, from, from.row + r) + copy.column;
    if (exact)
      std::copy_n(copy.tensor->exact.begin() + offset, columns,
                  tile.e.begin() + size_t(r) * tile.columns);
    else
      for (int c = 0; c < columns; ++c) tile.row(r)[c] = static_cast<float>(t.values[offset + c]);
  }
  tile.defined = true;
  tile.of_rows = copy.place;
  tile.of_columns = {true, "", {0, 0}, copy.column};
  return tile;
}

// Once the slot is listed at the barrier, the next settle() there may let it arrive; arriving first
// keeps a phase from completing before its bytes are announced.
void announce(Machine& m, Agent& a, const Stmt& s, const TileCopy& copy) {
  SharedSlot& slot = *copy.to.slot;
  slot.use = copy.to.use;
  slot.filled_by = copy.full.barriers;
  slot.barrier_slot = copy.full.slot;
  slot.phase = copy.full.phase;
  slot.writer = &s;
  arrive_at(m, a, s, copy.full, 1);
  slot.arriving = true;
  copy.full.barriers->slots[copy.full.slot].copies.push_back(&slot);
}

Next exec_tma_load(Machine& m, Agent& a, const Stmt& s) {
  const TileCopy copy = tile_copy_of(m, a, s);
  if (!copy.to.slot || !may_fill(m, s, *copy.to.slot)) return Next::on;
  copy.to.slot->tile = fetch(copy);
  copy.to.slot->parts = copy.to.slot->parts_due = 0;
  announce(m, a, s, copy);
  return Next::on;
}

Next exec_tma_load_tile(Machine& m, Agent& a, const Stmt& s) { return exec_tma_load(m, a, s); }

// All of them are inside.
TileCopy rows_copy_of(Machine& m, Agent& a, const Stmt& s) {
  const Coordinates from = coordinates_of(m, a, s, false);
  TileCopy copy{
      from.tensor, {true, from.name, from.outer, from.row}, shared_of(m, a, s, tl::Hole::dst)};
  if (!from.tensor || !copy.to.slot) {
    copy.to.slot = nullptr;
    return copy;
  }
  const Tensor& t = from.tensor->data;
  const int rows = copy.to.slot->tile.rows;
  const bool inside = t.rank() == 3 && from.row + rows <= t.shape[2];
  if (!inside)
    m.faults.raise("exec.bounds", &s,
                   fmt::format("{} copies rows {} to {} of {}", cite(s), from.row,
                               from.row + rows - 1, t.shape[2]));
  if (!inside || !may_copy_rows(m, s, offset_of(t, from, from.row), *copy.to.slot))
    copy.to.slot = nullptr;
  return copy;
}

Tile fetch_rows(const TileCopy& copy) {
  Tile tile = copy.to.slot->tile;
  const Tensor& t = copy.tensor->data;
  const int64_t offset =
      offset_of(t, {nullptr, "", copy.place.outer, copy.place.first}, copy.place.first);
  for (int r = 0; r < tile.rows; ++r)
    if (tile.e.empty())
      tile.x[r] = static_cast<float>(t.values[offset + r]);
    else
      tile.e[r] = copy.tensor->exact[offset + r];
  tile.defined = true;
  return tile;
}

Next exec_tma_load_rows(Machine& m, Agent& a, const Stmt& s) {
  TileCopy copy = rows_copy_of(m, a, s);
  copy.full = barrier_of(m, a, s, tl::Hole::barrier);
  if (!copy.to.slot || !copy.full.barriers || !may_fill(m, s, *copy.to.slot)) return Next::on;
  copy.to.slot->tile = fetch_rows(copy);
  copy.to.slot->parts = copy.to.slot->parts_due = 0;
  announce(m, a, s, copy);
  return Next::on;
}

SharedSlot* leaving(Machine& m, Agent& a, const Stmt& s) {
  SharedSlot* slot = readable_of(m, a, s, tl::Hole::src);
  if (!slot) return nullptr;
  if (!a.guarded() && a.thread < 0) {
    m.faults.raise("exec.sync", &s,
                   fmt::format("{} is run by every thread of a warpgroup", cite(s)));
    return nullptr;
  }
  if (!slot->filled_by && !slot->published) {
    m.faults.raise(
        "exec.not_published", &s,
        fmt::format("{} may read what was there before: no fence_async since the store", cite(s)));
    return nullptr;
  }
  return slot;
}

namespace {
Next left(Agent& a, const Stmt& s, SharedSlot& slot) {
  ++slot.stores;
  slot.reader = &s;
  a.stores_reading.push_back(&slot);
  a.stores.push_back(&slot);
  return Next::on;
}
}  // namespace

Next exec_tma_store(Machine& m, Agent& a, const Stmt& s) {
  const Coordinates to = coordinates_of(m, a, s, true);
  SharedSlot* slot = to.tensor ? leaving(m, a, s) : nullptr;
  if (!slot) return Next::on;
  const Tile& tile = slot->tile;
  const auto& shape = to.tensor->data.shape;
  const bool whole_rows = !s.has(tl::Hole::column);
  if (shape.size() != 4 || (whole_rows && shape[3] > tile.columns)) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{} does not have rows of {}", to.name, tile.columns));
    return Next::on;
  }
  if (!rows_are_chunks(m, s, *to.tensor)) return Next::on;
  for (int r = 0; r < tile.rows && to.row + r < shape[2]; ++r)
    for (int c = 0; c < tile.columns && to.column + c < shape[3]; ++c)
      write_element(m, s, *to.tensor, offset_of(to.tensor->data, to, to.row + r) + to.column + c,
                    tile, size_t(r) * tile.columns + c);
  return left(a, s, *slot);
}

namespace {
// Whether nobody has added to this element of a tile of elements: a second addition would round.
bool is_first(Machine& m, const Stmt& s, Global& g, int64_t at) {
  if (g.data.dtype == Dtype::f32) return true;
  if (g.adders.empty()) g.adders.resize(g.written.size());
  Adder& first = g.adders[at];
  if (first.row >= 0)
    m.faults.raise("exec.written_twice", &s,
                   fmt::format("{} adds to element {} of a scratch of elements, and {} has",
                               cite(s), at, cite(*first.stmt)));
  first = {0, 0, 0, &s};
  return !m.faults.any();
}

bool lies_in_sums(Machine& m, const Stmt& s, const Coordinates& to, const Tile& tile) {
  const auto& shape = to.tensor->data.shape;
  const bool whole = shape.size() == 4 && shape[3] % 8 == 0;  // however few of them a tile has
  if (whole && to.row % tile.rows == 0 && to.column % tile.columns == 0 &&
      to.row + tile.rows <= shape[2] && to.column + tile.columns <= shape[3])
    return true;
  m.faults.raise("exec.bounds", &s,
                 fmt::format("{} adds [{}, {}] from row {} and column {} on to [{}, {}]", cite(s),
                             tile.rows, tile.columns, to.row, to.column, shape[2], shape.back()));
  return false;
}

bool add_to_sums(Machine& m, const Stmt& s, const Coordinates& to, const Tile& tile) {
  for (int r = 0; r < tile.rows; ++r)
    for (int c = 0; c < tile.columns; ++c) {
      const int64_t at = offset_of(to.tensor->data, to, to.row + r) + to.column + c;
      const size_t k = size_t(r) * tile.columns + c;
      if (!is_first(m, s, *to.tensor, at)) return false;
      if (m.algebra) {
        to.tensor->exact[at] = m.algebra->add(to.tensor->exact[at], tile.e[k]);
      } else {
        double& sum = to.tensor->data.values[at];
        sum = static_cast<float>(sum) + tile.x[k];
      }
    }
  return true;
}
}  // namespace

// Adds a tile to sums that the pre-pass has set to zero. The device adds in any order: floats; to
// elements one tile alone.
Next exec_tma_add(Machine& m, Agent& a, const Stmt& s) {
  const Coordinates to = coordinates_of(m, a, s, true);
  SharedSlot* slot = to.tensor ? leaving(m, a, s) : nullptr;
  if (!slot) return Next::on;
  if (!lies_in_sums(m, s, to, slot->tile) || !add_to_sums(m, s, to, slot->tile)) return Next::on;
  return left(a, s, *slot);
}

// The same of an accumulator, by its warpgroup.
Next exec_add_tile(Machine& m, Agent& a, const Stmt& s) {
  const Coordinates to = coordinates_of(m, a, s, true);
  const auto tile = to.tensor ? tile_of(m, a, s, tl::Hole::src, Role::accumulator, true) : nullptr;
  if (tile && lies_in_sums(m, s, to, *tile)) add_to_sums(m, s, to, *tile);
  return Next::on;
}

Next exec_tma_store_tile(Machine& m, Agent& a, const Stmt& s) { return exec_tma_store(m, a, s); }

Next exec_load(Machine& m, Agent& a, const Stmt& s) {
  const SharedSlot* from = readable_of(m, a, s, tl::Hole::src);
  const auto to = tile_of(m, a, s, tl::Hole::dst, Role::operand, false);
  if (!from || !to || !same_shape(m, s, from->tile, *to)) return Next::on;
  to->x = from->tile.x;
  to->e = from->tile.e;
  to->of_rows = from->tile.of_rows;
  to->of_columns = from->tile.of_columns;
  to->defined = true;
  return Next::on;
}

namespace {
// The agent has written the slot: others see it when it has handed it over.
void stored(Agent& a, const Stmt& s, SharedSlot& slot, bool published) {
  slot.tile.defined = true;
  slot.filled_by = nullptr;
  slot.stored_by = a.index;
  slot.published = published;
  slot.handed_over.clear();
  if (std::find(a.stored.begin(), a.stored.end(), &slot) == a.stored.end())
    a.stored.push_back(&slot);
  slot.writer = &s;
}

// Where warpgroups are alike, the other threads' rows are there after a sync.
void seen_after_a_sync(const Machine& m, Agent& a, SharedSlot& slot) {
  if (m.kernel->op != tl::Op::warpgroups_kernel) return;
  slot.copiers = slot.copied = slot.opened = 1;
  slot.synced = 0;
  slot.stored_by = -1;  // of several warpgroups, perhaps: a sync tells, no barrier
  a.unsynced.push_back(&slot);
}

// To columns `column` ... of a tile, which keeps what it has in the others.
Next store_at(Machine& m, Agent& a, const Stmt& s, int64_t column) {
  const auto from = tile_of(m, a, s, tl::Hole::src, Role::accumulator, true);
  const SharedUse to = shared_of(m, a, s, tl::Hole::dst);
  if (!from || !to.slot || !may_fill(m, s, *to.slot)) return Next::on;
  Tile& tile = to.slot->tile;
  if (!columns_are_panels(m, s, tile, column, from->columns)) return Next::on;
  if (from->rows != tile.rows && !same_shape(m, s, *from, tile)) return Next::on;
  for (int r = 0; r < from->rows; ++r)
    for (int c = 0; c < from->columns; ++c)
      store_element(tile, size_t(r) * tile.columns + column + c, *from,
                    size_t(r) * from->columns + c);
  tile.of_rows = from->of_rows;
  tile.of_columns = from->of_columns;
  tile.masked = from->masked;
  stored(a, s, *to.slot, false);
  seen_after_a_sync(m, a, *to.slot);
  return Next::on;
}
}  // namespace

// The tile's rows are the accumulator's columns.
Next exec_store_transposed(Machine& m, Agent& a, const Stmt& s) {
  const auto from = tile_of(m, a, s, tl::Hole::src, Role::accumulator, true);
  const SharedUse to = shared_of(m, a, s, tl::Hole::dst);
  if (!from || !to.slot || !may_fill(m, s, *to.slot)) return Next::on;
  Tile& tile = to.slot->tile;
  if (from->rows != tile.columns || from->columns != tile.rows) {
    same_shape(m, s, *from, tile);
    return Next::on;
  }
  for (int r = 0; r < from->rows; ++r)
    for (int c = 0; c < from->columns; ++c)
      store_element(tile, size_t(c) * tile.columns + r, *from, size_t(r) * from->columns + c);
  tile.of_rows = from->of_columns;
  tile.of_columns = from->of_rows;
  tile.masked = from->masked;
  stored(a, s, *to.slot, false);
  seen_after_a_sync(m, a, *to.slot);
  return Next::on;
}

Next exec_store(Machine& m, Agent& a, const Stmt& s) { return store_at(m, a, s, 0); }
Next exec_store_columns(Machine& m, Agent& a, const Stmt& s) {
  return store_at(m, a, s, integer_of(context(m, a, s), s.column()));
}

// No other engine reads a row ring, so nothing has to be published.
Next exec_put_rows(Machine& m, Agent& a, const Stmt& s) {
  const auto from = row_of(m, a, s, tl::Hole::src, true);
  const SharedUse to = shared_of(m, a, s, tl::Hole::dst);
  if (!from || !to.slot || m.faults.any()) return Next::on;
  if (from->rows != to.slot->tile.rows || from->lanes != 1) {
    m.faults.raise(
        "exec.shape", &s,
        fmt::format("{}: {} rows to a slot of {}", cite(s), from->rows, to.slot->tile.rows));
    return Next::on;
  }
  to.slot->tile.x = from->x;
  to.slot->tile.e = from->e;
  to.slot->use = to.use;
  stored(a, s, *to.slot, true);
  return Next::on;
}

Next exec_get_rows(Machine& m, Agent& a, const Stmt& s) {
  const SharedUse at = shared_of(m, a, s, tl::Hole::src);
  const auto to = row_of(m, a, s, tl::Hole::dst, false);
  if (!at.slot || !to || m.faults.any()) return Next::on;
  const SharedSlot* from = readable_of(m, a, s, tl::Hole::src);
  if (!from) return Next::on;
  if (from->use != at.use || from->tile.rows != to->rows || to->lanes != 1) {
    m.faults.raise(from->use != at.use ? "exec.stale" : "exec.shape", &s,
                   fmt::format("{}: use {} of {} rows is wanted, the slot holds use {} of {}",
                               cite(s), at.use, to->rows, from->use, from->tile.rows));
    return Next::on;
  }
  to->x = from->tile.x;
  to->e = from->tile.e;
  to->defined = true;
  return Next::on;
}

Next exec_store_rows(Machine& m, Agent& a, const Stmt& s) {
  const auto from = row_of(m, a, s, tl::Hole::src, true);
  const Coordinates to = coordinates_of(m, a, s, true);
  if (!from || !to.tensor) return Next::on;
  if (to.tensor->data.rank() != 3 || from->lanes != 1) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{} needs a row vector and a tensor with one "
                               "value a row",
                               cite(s)));
    return Next::on;
  }
  for (int r = 0; r < from->rows && to.row + r < to.tensor->data.shape[2]; ++r)
    write_element(m, s, *to.tensor, offset_of(to.tensor->data, to, to.row + r), *from, r);
  return Next::on;
}

Next exec_store_accumulator(Machine& m, Agent& a, const Stmt& s) {
  const auto from = tile_of(m, a, s, tl::Hole::src, Role::accumulator, true);
  const Coordinates to = coordinates_of(m, a, s, true);
  if (!from || !to.tensor) return Next::on;
  const std::vector<int64_t>& shape = to.tensor->data.shape;
  if (shape.size() != 4 || shape[3] != from->columns) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{}: a tile of {} columns, rows of [{}]", cite(s), from->columns,
                               fmt::join(shape, ", ")));
    return Next::on;
  }
  for (int r = 0; r < from->rows && to.row + r < shape[2]; ++r) {
    const int64_t at = offset_of(to.tensor->data, to, to.row + r);
    for (int c = 0; c < from->columns; ++c)
      write_element(m, s, *to.tensor, at + c, *from, r * from->columns + c);
  }
  return Next::on;
}

Next exec_store_line(Machine& m, Agent& a, const Stmt& s) {
  const auto from = line_of(m, a, s, tl::Hole::src, true);
  const Coordinates to = coordinates_of(m, a, s, true);
  if (!from || !to.tensor) return Next::on;
  const std::vector<int64_t>& shape = to.tensor->data.shape;
  if (shape.size() != 4 || shape[3] != from->rows) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{}: a line of {} columns, rows of [{}]", cite(s), from->rows,
                               fmt::join(shape, ", ")));
    return Next::on;
  }
  for (int j = 0; j < from->rows && to.row < shape[2]; ++j)
    write_element(m, s, *to.tensor, offset_of(to.tensor->data, to, to.row) + j, *from, j);
  return Next::on;
}

// From accumulator to operand, rounding to the element type.
Next exec_to_operand(Machine& m, Agent& a, const Stmt& s) {
  const auto from = tile_of(m, a, s, tl::Hole::src, Role::accumulator, true);
  const auto to = tile_of(m, a, s, tl::Hole::dst, Role::operand, false);
  if (!from || !to || !same_shape(m, s, *from, *to)) return Next::on;
  for (int k = 0; k < to->rows * to->columns; ++k) store_element(*to, k, *from, k);
  to->of_rows = from->of_rows;
  to->of_columns = from->of_columns;
  to->masked = from->masked;
  to->defined = true;
  return Next::on;
}

}  // namespace kw::exec
