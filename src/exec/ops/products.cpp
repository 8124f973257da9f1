// Products. An element is a sum over ascending k, each term multiplied and added in fp32 (products
// of two 16-bit values are exact). The hardware adds in another order and a wider sum; what that
// changes is below the rounding of its 16-bit operands.
//
// A product's value is there when it is issued; that nobody may look before the wait is checked.
#include <fmt/format.h>

#include <optional>

#include "exec/copies.h"
#include "tl/traits.h"

namespace kw::exec {

using tl::Stmt;

namespace {

using Sixteen = float __attribute__((vector_size(64), aligned(4)));

// c[4][16] += a[4][depth] * b[depth][16], with the sums in registers.
inline __attribute__((always_inline)) void multiply_part(int depth, int columns, const float* a,
                                                         const float* b, float* c) {
  Sixteen sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = *reinterpret_cast<Sixteen*>(c + size_t(i) * columns);
  for (int k = 0; k < depth; ++k) {
    const Sixteen of_b = *reinterpret_cast<const Sixteen*>(b + size_t(k) * columns);
    for (int i = 0; i < 4; ++i) sum[i] += a[size_t(i) * depth + k] * of_b;
  }
  for (int i = 0; i < 4; ++i) *reinterpret_cast<Sixteen*>(c + size_t(i) * columns) = sum[i];
}

// c[rows][columns] += a[rows][depth] * b[depth][columns]; rows in fours, columns in sixteens. The
// same numbers on each machine: nothing is fused (src/CMakeLists.txt).
__attribute__((target_clones("avx512f", "avx2", "default"))) void multiply(
    int rows, int depth, int columns, const float* a, const float* b, float* c) {
  for (int i = 0; i < rows; i += 4)
    for (int j = 0; j < columns; j += 16)
      multiply_part(depth, columns, a + size_t(i) * depth, b + j, c + size_t(i) * columns + j);
}

template <class T>
std::vector<T> transposed(const Tile& t, const std::vector<T>& of) {
  std::vector<T> x(of.size());
  if (of.empty()) return x;
  for (int r = 0; r < t.rows; ++r)
    for (int c = 0; c < t.columns; ++c) x[size_t(c) * t.rows + r] = of[size_t(r) * t.columns + c];
  return x;
}

// The left side of `a.T @ b`: its rows are the tile's columns.
Tile turned(const Tile& t) {
  Tile out = t;
  std::swap(out.rows, out.columns);
  std::swap(out.of_rows, out.of_columns);
  out.x = transposed(t, t.x);
  out.e = transposed(t, t.e);
  return out;
}

bool fits(Machine& m, const Stmt& s, const Tile& c, const Tile& a, const Tile& b, bool transpose) {
  const int depth = transpose ? b.columns : b.rows, columns = transpose ? b.rows : b.columns;
  if (a.columns == depth && c.columns == columns && c.rows == a.rows && a.dtype == b.dtype &&
      c.rows % 4 == 0 && columns % 16 == 0)
    return true;
  m.faults.raise("exec.shape", &s,
                 fmt::format("{}: {} x {} = {} x {} times {} x {}", cite(s), c.rows, c.columns,
                             a.rows, a.columns, depth, columns));
  return false;
}

// The index that is summed over must mean the same in both operands.
bool contracts_alike(Machine& m, const Stmt& s, const Tile& a, const Tile& b, bool transpose) {
  const Place& left = a.of_columns;
  const Place& right = transpose ? b.of_columns : b.of_rows;
  if (!left.known || !right.known || left.first == right.first) return true;
  m.faults.raise("exec.origin", &s,
                 fmt::format("{} sums over columns from {} on the left and rows from {} on the "
                             "right",
                             cite(s), left.first, right.first));
  return false;
}

void place(Machine& m, const Stmt& s, Tile& c, const Tile& a, const Tile& b, bool transpose,
           bool adds) {
  if (adds && c.of_rows.known && a.of_rows.known &&
      (c.of_rows.first != a.of_rows.first || c.of_rows.outer != a.of_rows.outer))
    m.faults.raise("exec.origin", &s,
                   fmt::format("{} adds rows from [{}, {}] to rows from [{}, {}]", cite(s),
                               fmt::join(a.of_rows.outer, ", "), a.of_rows.first,
                               fmt::join(c.of_rows.outer, ", "), c.of_rows.first));
  if (adds && transpose && c.of_columns.known && b.of_rows.known &&
      (c.of_columns.first != b.of_rows.first || c.of_columns.outer[0] != b.of_rows.outer[0]))
    m.faults.raise(
        "exec.origin", &s,
        fmt::format("{} adds columns of rows from [{}, {}] to those of rows from [{}, {}]", cite(s),
                    fmt::join(b.of_rows.outer, ", "), b.of_rows.first,
                    fmt::join(c.of_columns.outer, ", "), c.of_columns.first));
  c.of_rows = a.of_rows;
  c.of_columns = transpose ? b.of_rows : b.of_columns;
}

void record(Machine& m, const Stmt& s, const Tile& a, const Tile& b) {
  if (!a.of_rows.known || !b.of_rows.known) return;
  // Warpgroups may each have some of the output's columns.
  std::string into = tl::base_name(s.acc());
  if (b.of_columns.known && b.of_columns.first > 0)
    into += fmt::format(" from column {}", b.of_columns.first);
  m.outcome.contractions.push_back({a.of_rows, b.of_rows, a.rows, b.rows, a.masked, into});
}

struct Operands {
  std::shared_ptr<Tile> c, operand;  // operand null: the left side is in shared memory
  const Tile* a = nullptr;
  std::vector<SharedSlot*> reads;  // the right side last
};

// reads is empty after a fault.
Operands operands_of(Machine& m, Agent& agent, const Stmt& s, bool adds) {
  Operands o{tile_of(m, agent, s, tl::Hole::acc, Role::accumulator, adds), nullptr, nullptr, {}};
  // A register tile is a name alone; a shared one is a name, or a use of it: q_s[me][u].
  const tl::Expr* named = s.a().get();
  while (named->kind == tl::ExprKind::index) named = named->args[0].get();
  const bool shared = agent.block->arrays.count(named->text) > 0;
  SharedSlot* left = shared && o.c ? readable_of(m, agent, s, tl::Hole::a) : nullptr;
  if (left) o.a = &left->tile;
  if (!shared && o.c) o.operand = tile_of(m, agent, s, tl::Hole::a, Role::operand, true);
  if (o.operand) o.a = o.operand.get();
  SharedSlot* right = o.a ? readable_of(m, agent, s, tl::Hole::b) : nullptr;
  if (right && left) o.reads.push_back(left);
  if (right) o.reads.push_back(right);
  return o;
}

void compute(Machine& m, const Stmt& s, Tile& c, const Tile& a, const Tile& b, bool transpose,
             bool adds) {
  place(m, s, c, a, b, transpose, adds);
  if (!adds) std::fill(c.x.begin(), c.x.end(), 0.0f);
  if (!adds) std::fill(c.e.begin(), c.e.end(), exact::Element());
  if (m.algebra)
    m.algebra->add_product(c.rows, a.columns, c.columns, a.e.data(), b.e.data(), transpose,
                           c.e.data());
  else if (transpose)
    multiply(c.rows, a.columns, c.columns, a.x.data(), transposed(b, b.x).data(), c.x.data());
  else
    multiply(c.rows, a.columns, c.columns, a.x.data(), b.x.data(), c.x.data());
  if (!adds) c.masked = false;
  if (!adds || transpose) *c.scores = {c.scores->products + 1, &s};
  c.defined = true;
  if (adds && !transpose) record(m, s, a, b);
}

// Some rows and columns of a tile, at their places.
Tile part_of(const Machine& m, const Tile& t, int64_t row, int rows, int64_t column, int columns) {
  Tile part(t.role, t.dtype, rows, columns, m.algebra);
  for (int r = 0; r < rows; ++r) {
    const size_t at = size_t(row + r) * t.columns + column, to = size_t(r) * columns;
    if (t.e.empty())
      std::copy_n(t.x.begin() + at, columns, part.x.begin() + to);
    else
      std::copy_n(t.e.begin() + at, columns, part.e.begin() + to);
  }
  part.defined = t.defined;
  part.masked = t.masked;
  part.of_rows = t.of_rows;
  part.of_rows.first += row;
  part.of_columns = t.of_columns;
  part.of_columns.first += column;
  return part;
}

// Some columns of a tile: panels, or half of one.
std::optional<Tile> columns_of(Machine& m, Agent& agent, const Stmt& s, const Tile& t,
                               int columns) {
  const int64_t from = integer_of(context(m, agent, s), s.column());
  if (!columns_are_panels(m, s, t, from, columns, true)) return std::nullopt;
  Tile part = part_of(m, t, 0, t.rows, from, columns);
  part.of_columns.known = true;
  return part;
}

// A warpgroup's rows of a tile: 64, from a multiple of 64 on.
std::optional<Tile> rows_of(Machine& m, Agent& agent, const Stmt& s, const Tile& t, int rows) {
  const int64_t from = integer_of(context(m, agent, s), s.row());
  if (from < 0 || from % rows != 0 || from + rows > t.rows) {
    m.faults.raise(
        "exec.bounds", &s,
        fmt::format("{} multiplies {} rows from {} on, of {}, which are shared out by {}", cite(s),
                    rows, from, t.rows, rows));
    return std::nullopt;
  }
  return part_of(m, t, from, rows, 0, t.columns);
}

// What a product is: `c += a @ b.T`, and whether it goes on while the agent does.
Next product(Machine& m, Agent& agent, const Stmt& s) {
  const bool transpose = tl::traits(s.op).transposed, adds = tl::adds_product(s.op);
  const bool async = tl::traits(s.op).async != tl::Async::none;
  const Operands o = operands_of(m, agent, s, adds);
  if (o.reads.empty()) return Next::on;
  const Tile& whole = o.reads.back()->tile;
  std::optional<Tile> part;
  if (s.has(tl::Hole::column)) part = columns_of(m, agent, s, whole, o.c->columns);
  if (m.faults.any()) return Next::on;
  const Tile& b = part ? *part : whole;
  std::optional<Tile> left;
  if (tl::traits(s.op).left_transposed) left = turned(*o.a);
  if (s.has(tl::Hole::row)) left = rows_of(m, agent, s, *o.a, o.c->rows);
  if (m.faults.any()) return Next::on;
  const Tile& a = left ? *left : *o.a;
  if (!fits(m, s, *o.c, a, b, transpose) || !contracts_alike(m, s, a, b, transpose))
    return Next::on;
  compute(m, s, *o.c, a, b, transpose, adds);
  if (!async) return Next::on;
  agent.products.push_back({o.c, o.operand, o.reads, &s});
  for (Tile* t : {o.c.get(), o.operand.get()}) {
    if (!t) continue;
    ++t->in_flight;
    t->issued = &s;
  }
  for (SharedSlot* slot : o.reads) {
    ++slot->products;
    slot->reader = &s;
  }
  return Next::on;
}

}  // namespace

Next exec_wgmma(Machine& m, Agent& a, const Stmt& s) { return product(m, a, s); }
Next exec_wgmma_add(Machine& m, Agent& a, const Stmt& s) { return product(m, a, s); }
Next exec_wgmma_add_transposed(Machine& m, Agent& a, const Stmt& s) { return product(m, a, s); }
Next exec_wgmma_add_transposed_a(Machine& m, Agent& a, const Stmt& s) { return product(m, a, s); }
Next exec_wgmma_add_columns(Machine& m, Agent& a, const Stmt& s) { return product(m, a, s); }
Next exec_wgmma_add_rows(Machine& m, Agent& a, const Stmt& s) { return product(m, a, s); }
Next exec_mma(Machine& m, Agent& a, const Stmt& s) { return product(m, a, s); }
Next exec_mma_add(Machine& m, Agent& a, const Stmt& s) { return product(m, a, s); }
Next exec_mma_add_transposed(Machine& m, Agent& a, const Stmt& s) { return product(m, a, s); }
Next exec_mma_add_columns(Machine& m, Agent& a, const Stmt& s) { return product(m, a, s); }

}  // namespace kw::exec
