// Element by element: filling, maps, maps that know where the tile lies, and vectors and tiles of
// what data says at rows, at columns, or at both.
//
// A map with global coordinates says where its tile starts. The tile knows: its rows came with the
// left side, its columns with those of the right one. The two must agree.
#include <fmt/format.h>

#include <algorithm>

#include "exec/ops/exec_ops.h"

namespace kw::exec {

using tl::Stmt;

Next exec_fill(Machine& m, Agent& a, const Stmt& s) {
  const Value v = real_of(context(m, a, s), s.value());
  const auto fill = [&](auto& to) {
    std::fill(to.x.begin(), to.x.end(), static_cast<float>(v.x));
    std::fill(to.e.begin(), to.e.end(), v.e);
    to.defined = true;
  };
  Binding* b = a.scope()->find(word_of(s, tl::Hole::target));
  if (b && std::holds_alternative<std::shared_ptr<Row>>(*b)) {
    fill(*std::get<std::shared_ptr<Row>>(*b));
    return Next::on;
  }
  const auto tile = tile_of(m, a, s, tl::Hole::target, Role::accumulator, false);
  if (!tile) return Next::on;
  fill(*tile);
  tile->of_rows = tile->of_columns = {};
  return Next::on;
}

bool is_true_origin(Machine& m, const Stmt& s, const Tile& t, const Origin& at) {
  if (!t.of_rows.known || !t.of_columns.known) {
    m.faults.raise("exec.origin", &s,
                   fmt::format("{} gives coordinates to a tile that stands for "
                               "no rows of a tensor",
                               cite(s)));
    return false;
  }
  if (t.of_rows.first == at.i && t.of_columns.first == at.j) return true;
  m.faults.raise(
      "exec.origin", &s,
      fmt::format("{} says the tile starts at ({}, {}) and it starts at ({}, {}): rows of "
                  "{}, columns of {}",
                  cite(s), at.i, at.j, t.of_rows.first, t.of_columns.first, t.of_rows.tensor,
                  t.of_columns.tensor));
  return false;
}

namespace {

// Whether a map by coordinates drops: scores become -inf, or weights 0.
bool drops(const tl::ExprPtr& body) {
  if (tl::mentions(body, "-inf")) return true;
  const auto is_zero = [](const tl::ExprPtr& e) {
    return e->kind == tl::ExprKind::real && e->text == "0.0";
  };
  return body->kind == tl::ExprKind::where && (is_zero(body->args[1]) || is_zero(body->args[2]));
}

Next placed_map(Machine& m, Agent& a, const Stmt& s, bool real) {
  const auto tile = tile_of(m, a, s, tl::Hole::target, Role::accumulator, true);
  if (!tile) return Next::on;
  const Context c = context(m, a, s);
  const Origin at{integer_of(c, s.i0()), integer_of(c, s.j0()), real};
  if (m.faults.any() || !is_true_origin(m, s, *tile, at)) return Next::on;
  run_map(m, a, s, *tile, word_of(s, tl::Hole::target), at);
  if (drops(s.value())) tile->masked = true;
  return Next::on;
}

}  // namespace

Next exec_map(Machine& m, Agent& a, const Stmt& s) {
  const auto tile = tile_of(m, a, s, tl::Hole::target, Role::accumulator, true);
  if (!tile) return Next::on;
  run_map(m, a, s, *tile, word_of(s, tl::Hole::target), std::nullopt);
  return Next::on;
}
Next exec_map_at(Machine& m, Agent& a, const Stmt& s) { return placed_map(m, a, s, false); }
Next exec_map_real(Machine& m, Agent& a, const Stmt& s) { return placed_map(m, a, s, true); }

Next exec_map_rows(Machine& m, Agent& a, const Stmt& s) {
  const auto row = row_of(m, a, s, tl::Hole::target, true);
  if (row) run_row_map(m, a, s, *row, word_of(s, tl::Hole::target));
  return Next::on;
}

namespace {
// The coordinate of the vector's first element: of a diagonal vector that of the last row and the
// first column.
int64_t first_of(const Context& c, const Stmt& s, const Row& v) {
  if (s.op == tl::Op::set_rows) return integer_of(c, s.i0());
  const int64_t j0 = integer_of(c, s.j0());
  return v.tile_rows ? j0 - (integer_of(c, s.i0()) + v.tile_rows - 1) : j0;
}

Next set_vector(Machine& m, Agent& a, const Stmt& s, const char* coordinate) {
  const auto vector = row_of(m, a, s, tl::Hole::target, false);
  if (!vector || m.faults.any()) return Next::on;
  if (vector->lanes != 1 || vector->column != (s.op == tl::Op::set_columns) ||
      (vector->tile_rows > 0) != (s.op == tl::Op::set_diagonals)) {
    m.faults.raise("exec.name", &s,
                   fmt::format("{} sets another kind of vector than {}", cite(s),
                               word_of(s, tl::Hole::target)));
    return Next::on;
  }
  const int64_t first = first_of(context(m, a, s), s, *vector);
  if (m.faults.any()) return Next::on;
  run_setting(m, a, s, *vector, coordinate, first);
  vector->defined = true;
  return Next::on;
}
}  // namespace

Next exec_set_rows(Machine& m, Agent& a, const Stmt& s) { return set_vector(m, a, s, "i"); }
Next exec_set_columns(Machine& m, Agent& a, const Stmt& s) { return set_vector(m, a, s, "j"); }
Next exec_set_diagonals(Machine& m, Agent& a, const Stmt& s) { return set_vector(m, a, s, "d"); }

// Where the tile lies is nobody's but the statement's to say: the scores that a map adds it to have
// their own origin, and a wrong one shows in the values.
Next exec_set_tile(Machine& m, Agent& a, const Stmt& s) {
  const auto tile = tile_of(m, a, s, tl::Hole::target, Role::operand, false);
  if (!tile) return Next::on;
  const Context c = context(m, a, s);
  const Origin at{integer_of(c, s.i0()), integer_of(c, s.j0()), false};
  if (m.faults.any()) return Next::on;
  run_map(m, a, s, *tile, "", at);
  tile->defined = true;
  return Next::on;
}

}  // namespace kw::exec
