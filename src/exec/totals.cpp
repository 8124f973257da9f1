// Totals of rows: warpgroups add them to a scratch, one value a row, and the pass behind the kernel
// sums it over the dimensions that a result lacks.
//
//   add_rows part_r -> part[c.b, h, j0]          a warpgroup, once for each block of queries
//   add_each dp[i, j] from (j0, m * BM) -> part[c.b, h, j - i]    each element where it belongs
//   sum_over part by w -> d_bias                 the pass, where d_bias has one value a head
//
// The device adds in memory without asking whose turn it is. A sum is the same from run to run only
// because all that is added to an element one thread adds, in the order of its text: so an element
// to which two have added is a fault, whatever order this run has shown. What add_each adds to an
// element, many add, in an order that is open: it makes no such promise.
#include <fmt/format.h>

#include "exec/machine.h"
#include "exec/ops/exec_ops.h"
#include "tl/traits.h"

namespace kw::exec {

using tl::Op;
using tl::Stmt;

bool was_written(Machine& m, const Stmt& s, const Global& g, int64_t at) {
  if (g.written[at]) return true;
  m.faults.raise(
      "exec.uninitialised", &s,
      fmt::format("{} needs element {} of a scratch, which no pre-pass has written", cite(s), at));
  return false;
}

Values values_of(Machine& m, Agent& a, const Stmt& s) {
  const std::string name = tl::base_name(s.tensor());
  const auto to = m.tensors.find(name);
  const Context c = context(m, a, s);
  const int64_t b = integer_of(c, s.batch()), h = integer_of(c, s.head());
  if (m.faults.any()) return {};
  if (to == m.tensors.end() || !to->second.scratch || to->second.data.rank() != 3) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{} needs a scratch with one value a row", cite(s)));
    return {};
  }
  const std::vector<int64_t>& n = to->second.data.shape;
  if (b < 0 || b >= n[0] || h < 0 || h >= n[1]) {
    m.faults.raise("exec.bounds", &s,
                   fmt::format("{}[{}, {}] is outside [{}]", name, b, h, fmt::join(n, ", ")));
    return {};
  }
  return {&to->second, (b * n[1] + h) * n[2], n[2], fmt::format("{}[{}, {}, ", name, b, h)};
}

namespace {

// Of which tile the warpgroup's additions are. Tiles are dealt to CTAs as the device likes: what
// two of them add to comes in any order, though one CTA may have had both here.
int64_t output_tile_of(const Machine& m, Agent& a) {
  for (const auto& [loop, at] : a.loops) {
    if (!tl::is(loop->op, tl::Family::tiles) || !tl::is_loop(loop->op)) continue;
    if (const Binding* w = a.scope()->find(loop->index()))
      if (const Value* tile = std::get_if<Value>(w))
        return int64_t(tile->x) * m.ctas + a.block->rank;
  }
  return -1 - a.block->index;
}

std::string name_of(const Machine& m, const Adder& a) {
  const std::string row = fmt::format("row {} of warpgroup {}", a.row, a.warpgroup);
  if (a.tile < 0) return fmt::format("{} of CTA {}", row, -1 - a.tile);
  return fmt::format("{}, tile {}", row, a.tile / m.ctas);
}

// Whether nobody else has added to the element.
bool is_alone(Machine& m, const Stmt& s, Adder& known, const Adder& now, const std::string& what) {
  if (known.row < 0) known = now;
  if (known == now) return true;
  Diagnostic& d = m.faults.raise("exec.order", &s,
                                 fmt::format("{} adds to {} for {}, and {} has: the order of the "
                                             "additions is open",
                                             cite(s), what, name_of(m, now), name_of(m, known)));
  d.notes.push_back({"added here: " + cite(*known.stmt), known.stmt->span});
  d.hint = "give each block a part of its own: another dimension of the scratch";
  return false;
}

// As total() closes a lane sum: neighbours first.
float total_of(const Row& l, int64_t r) {
  const float* x = &l.x[4 * size_t(r)];
  return (x[0] + x[1]) + (x[2] + x[3]);
}
exact::Element exact_total_of(Machine& m, const Row& l, int64_t r) {
  exact::Element sum = l.e[4 * size_t(r)];
  for (int lane = 1; lane < 4; ++lane) sum = m.algebra->add(sum, l.e[4 * size_t(r) + lane]);
  return sum;
}

void add_value(const Machine& m, Global& g, int64_t at, float x, const exact::Element& e) {
  if (m.algebra)
    g.exact[at] = m.algebra->add(g.exact[at], e);
  else
    g.data.values[at] = static_cast<float>(g.data.values[at]) + x;
}

}  // namespace

Next exec_add_rows(Machine& m, Agent& a, const Stmt& s) {
  const auto from = row_of(m, a, s, tl::Hole::src, true);
  const int64_t i = integer_of(context(m, a, s), s.row());
  if (!from || m.faults.any()) return Next::on;
  const Values to = values_of(m, a, s);
  if (!to.of) return Next::on;
  if (from->lanes != 4 || i < 0) {
    m.faults.raise(i < 0 ? "exec.bounds" : "exec.shape", &s,
                   i < 0 ? fmt::format("{}{}] is outside", to.place, i)
                         : fmt::format("{} needs a lane sum", cite(s)));
    return Next::on;
  }
  Global& g = *to.of;
  if (g.adders.empty()) g.adders.resize(g.written.size());
  Adder adder{output_tile_of(m, a), a.warpgroup, 0, &s};
  for (int r = 0; r < from->rows && i + r < to.count; ++r) {
    const int64_t at = to.first + i + r;
    adder.row = r;
    if (!was_written(m, s, g, at) ||
        !is_alone(m, s, g.adders[at], adder, fmt::format("{}{}]", to.place, i + r)))
      return Next::on;
    add_value(m, g, at, m.algebra ? 0 : total_of(*from, r),
              m.algebra ? exact_total_of(m, *from, r) : exact::Element());
  }
  return Next::on;
}

namespace {

// The numbers of a tile's elements. Along d each diagonal has one.
std::vector<int64_t> numbers_of(Machine& m, Agent& a, const Stmt& s, const Tile& tile,
                                const Origin& at) {
  const int rows = tile.rows, columns = tile.columns;
  if (s.op == Op::add_each) return run_numbers(m, a, s, rows, columns, at);
  const std::vector<int64_t> along =
      run_numbers_along(m, a, s, at.j - (at.i + rows - 1), rows + columns - 1);
  std::vector<int64_t> out;
  for (int n = 0; n < rows * columns && !along.empty(); ++n)
    out.push_back(along[size_t(n % columns - n / columns + rows - 1)]);
  return out;
}

}  // namespace

// An element whose number the scratch does not have is dropped, as tiles hang over the edges of
// tensors.
Next exec_add_each(Machine& m, Agent& a, const Stmt& s) {
  const auto tile = tile_of(m, a, s, tl::Hole::src, Role::accumulator, true);
  if (!tile) return Next::on;
  const Context c = context(m, a, s);
  const Origin at{integer_of(c, s.i0()), integer_of(c, s.j0()), false};
  if (m.faults.any() || !is_true_origin(m, s, *tile, at)) return Next::on;
  const Values to = values_of(m, a, s);
  if (!to.of) return Next::on;
  const std::vector<int64_t> numbers = numbers_of(m, a, s, *tile, at);
  for (size_t n = 0; n < numbers.size(); ++n) {
    if (numbers[n] < 0 || numbers[n] >= to.count) continue;
    if (!was_written(m, s, *to.of, to.first + numbers[n])) return Next::on;
    add_value(m, *to.of, to.first + numbers[n], m.algebra ? 0 : tile->x[n],
              m.algebra ? tile->e[n] : exact::Element());
  }
  return Next::on;
}
Next exec_add_diagonals(Machine& m, Agent& a, const Stmt& s) { return exec_add_each(m, a, s); }

namespace {

// Of each of a scratch's dimensions, how far apart its indices are among the first `count` of the
// result's: 0 if it lacks it. None where the result has others.
std::optional<std::vector<int64_t>> steps_in(const Global& result, size_t count,
                                             const std::vector<std::string>& dims) {
  std::vector<int64_t> steps(dims.size(), 0);
  int64_t apart = 1;
  for (size_t d = dims.size(); d-- > 0;)
    if (count > 0 && result.dims[count - 1] == dims[d]) {
      steps[d] = apart;
      apart *= result.data.shape[--count];
    }
  if (count > 0) return std::nullopt;
  return steps;
}

// The elements of a result while a pass adds them up, in fp32 or in the algebra.
class Sums {
 public:
  Sums(Machine& m, Global& to)
      : m_(m), to_(to), x_(to.written.size(), 0), e_(m.algebra ? to.written.size() : 0) {}
  void add(int64_t at, const Global& from, int64_t n) {
    if (m_.algebra)
      e_[at] = m_.algebra->add(e_[at], from.exact[n]);
    else
      x_[at] += static_cast<float>(from.data.values[n]);
  }
  // Rounded once to the result's type, times a factor if there is one.
  void give(const Stmt& s, const Value* scale = nullptr) {
    for (size_t n = 0; n < x_.size(); ++n) {
      note_written(m_, s, to_.written[n]);
      if (m_.algebra)
        to_.exact[n] = scale ? m_.algebra->mul(e_[n], scale->e) : e_[n];
      else
        to_.data.values[n] =
            round_to(to_.data.dtype, scale ? x_[n] * static_cast<float>(scale->x) : x_[n]);
    }
  }

 private:
  Machine& m_;
  Global& to_;
  std::vector<float> x_;
  std::vector<exact::Element> e_;
};

}  // namespace

// Each element of the result: what the scratch has at its indices and at any of the others.
void sum_over(Machine& m, const Stmt& s) {
  const auto from = m.tensors.find(tl::base_name(s.src()));
  const auto to = m.tensors.find(tl::base_name(s.tensor()));
  if (from == m.tensors.end() || !from->second.scratch || from->second.data.rank() != 3 ||
      to == m.tensors.end() || !to->second.writes) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{} needs values of rows and a tensor to write", cite(s)));
    return;
  }
  const Global& values = from->second;
  Global& g = to->second;
  const auto steps = steps_in(g, g.dims.size(), values.dims);
  if (!steps) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{}: dimensions [{}] are not some of [{}]", cite(s),
                               fmt::join(g.dims, ", "), fmt::join(values.dims, ", ")));
    return;
  }
  const std::vector<int64_t>&n = values.data.shape, &step = *steps;
  Sums sums(m, g);
  for (int64_t at = 0; at < int64_t(values.written.size()); ++at) {
    if (!was_written(m, s, values, at)) return;
    sums.add(at / n[2] / n[1] * step[0] + at / n[2] % n[1] * step[1] + at % n[2] * step[2], values,
             at);
  }
  sums.give(s);
}

namespace {

// Blocks of 64 rows follow each other, those of one row of blocks first.
struct Blocks {
  static constexpr int64_t kRows = 64;
  int64_t columns, in_row;  // of one; how many side by side
  int64_t at(int64_t i, int64_t j) const {
    return ((i / kRows * in_row + j / columns) * kRows + i % kRows) * columns + j % columns;
  }
};

}  // namespace

// Each element of the result: the sum over batch entries and heads that it lacks of what lies in
// tiles, times a factor.
void sum_tiles(Machine& m, const Stmt& s, const Context& c) {
  const auto from = m.tensors.find(tl::base_name(s.src()));
  const auto to = m.tensors.find(tl::base_name(s.tensor()));
  const Value scale = real_of(c, s.scale());
  if (m.faults.any()) return;
  const auto refuse = [&](const std::string& what) {
    m.faults.raise("exec.shape", &s, fmt::format("{}: {}", cite(s), what));
  };
  if (from == m.tensors.end() || !from->second.scratch || from->second.data.rank() != 4 ||
      to == m.tensors.end() || !to->second.writes || to->second.data.rank() < 2)
    return refuse("tiles and a tensor to write are needed");
  const Global& tiles = from->second;
  Global& g = to->second;
  const std::vector<int64_t>&n = tiles.data.shape, &shape = g.data.shape;
  const size_t outer = shape.size() - 2;
  const int64_t M = shape[outer], N = shape[outer + 1],
                rows = (M + Blocks::kRows - 1) / Blocks::kRows;  // of blocks
  const Blocks blocks{n[3], rows ? n[2] / Blocks::kRows / rows : 0};
  if (n[2] != rows * Blocks::kRows * blocks.in_row || blocks.in_row * n[3] < N)
    return refuse(fmt::format("{} rows of {} columns are no blocks of [{}, {}]", n[2], n[3], M, N));
  const auto steps = steps_in(g, outer, {tiles.dims[0], tiles.dims[1]});
  if (!steps) return refuse("the tensor has dimensions that the tiles lack");
  Sums sums(m, g);
  for (int64_t head = 0; head < n[0] * n[1]; ++head)
    for (int64_t x = 0; x < M * N; ++x)
      sums.add((head / n[1] * (*steps)[0] + head % n[1] * (*steps)[1]) * M * N + x, tiles,
               head * n[2] * n[3] + blocks.at(x / N, x % N));
  sums.give(s, &scale);
}

Next exec_sum_tiles(Machine& m, Agent&, const Stmt& s) {
  return outside(m, s, "the pass behind the kernel");
}
Next exec_sum_over(Machine& m, Agent&, const Stmt& s) {
  return outside(m, s, "the pass behind the kernel");
}

}  // namespace kw::exec
