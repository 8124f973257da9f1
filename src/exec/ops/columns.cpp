// Columns of a tile and the values that a row ring has for them, one a column.
//
//   fill_columns s = offset_s[t]            every row becomes the slot's vector
//   add_columns s += offset_s[t]
//   scale_columns s *= factor_s[t]
#include <fmt/format.h>

#include <algorithm>

#include "exec/ops/exec_ops.h"

namespace kw::exec {

using tl::Stmt;

namespace {
// The slot's vector, and the tile with a column for each of its values.
struct SummedColumns {
  const Tile* from = nullptr;
  std::shared_ptr<Tile> to;
};
SummedColumns columns_of(Machine& m, Agent& a, const Stmt& s, bool defined) {
  const SharedSlot* from = readable_of(m, a, s, tl::Hole::src);
  auto to = from ? tile_of(m, a, s, tl::Hole::dst, Role::accumulator, defined) : nullptr;
  if (!to) return {};
  if (from->tile.rows == to->columns) return {&from->tile, std::move(to)};
  m.faults.raise("exec.shape", &s,
                 fmt::format("{}: {} values to {} columns", cite(s), from->tile.rows, to->columns));
  return {};
}
}  // namespace

// Every row of the tile becomes the slot's vector.
Next exec_fill_columns(Machine& m, Agent& a, const Stmt& s) {
  const auto [from, to] = columns_of(m, a, s, false);
  if (!to) return Next::on;
  for (int r = 0; r < to->rows; ++r) {
    const size_t at = size_t(r) * to->columns;
    if (m.algebra)
      std::copy(from->e.begin(), from->e.end(), to->e.begin() + at);
    else
      std::copy(from->x.begin(), from->x.end(), to->x.begin() + at);
  }
  to->defined = true;
  to->of_rows = to->of_columns = {};
  return Next::on;
}

namespace {
// Each element with the slot's value of its column.
template <class Reals, class Elements>
Next with_columns(Machine& m, Agent& a, const Stmt& s, Reals reals, Elements elements) {
  const auto [from, to] = columns_of(m, a, s, true);
  if (!to) return Next::on;
  for (size_t n = 0; n < size_t(to->rows) * to->columns; ++n) {
    const size_t column = n % to->columns;
    if (m.algebra)
      to->e[n] = elements(to->e[n], from->e[column]);
    else
      to->x[n] = static_cast<float>(reals(to->x[n], from->x[column]));
  }
  return Next::on;
}
}  // namespace

// The slot's vector is added to every row of the tile.
Next exec_add_columns(Machine& m, Agent& a, const Stmt& s) {
  return with_columns(
      m, a, s, [](double x, double y) { return x + y; },
      [&](const exact::Element& x, const exact::Element& y) { return m.algebra->add(x, y); });
}

// Every row of the tile is multiplied by it.
Next exec_scale_columns(Machine& m, Agent& a, const Stmt& s) {
  return with_columns(
      m, a, s, [](double x, double y) { return x * y; },
      [&](const exact::Element& x, const exact::Element& y) { return m.algebra->mul(x, y); });
}

}  // namespace kw::exec
