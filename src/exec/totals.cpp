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

bool was_written(Machine& m, const Stmt& s, const Global& g, int64_t at) {
  if (g.written[at]) return true;
  m.faults.raise(
      "exec.uninitialised", &s,
      fmt::format("{} needs element {} of a scratch, which no pre-pass has written", cite(s), at));
  return false;
}

// A scratch with one value a row, at a batch entry and a head that it has.
struct Values {
  Global* of = nullptr;
  int64_t first = 0, count = 0;  // of that head's values
  std::string place;             // for messages
};
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
  // Of each dimension of the scratch, how far apart its indices are in the result: 0 if it lacks
  // it.
  std::vector<int64_t> step(3, 0);
  int64_t apart = 1;
  size_t left = g.dims.size();
  for (size_t d = 3; d-- > 0;)
    if (left > 0 && g.dims[left - 1] == values.dims[d]) {
      step[d] = apart;
      apart *= g.data.shape[--left];
    }
  if (left > 0) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{}: dimensions [{}] are not some of [{}]", cite(s),
                               fmt::join(g.dims, ", "), fmt::join(values.dims, ", ")));
    return;
  }
  const std::vector<int64_t>& n = values.data.shape;
  std::vector<float> sums(g.written.size(), 0);
  std::vector<exact::Element> exact(m.algebra ? g.written.size() : 0);
  for (int64_t at = 0; at < int64_t(values.written.size()); ++at) {
    if (!was_written(m, s, values, at)) return;
    const int64_t x = at / n[2] / n[1] * step[0] + at / n[2] % n[1] * step[1] + at % n[2] * step[2];
    if (m.algebra)
      exact[x] = m.algebra->add(exact[x], values.exact[at]);
    else
      sums[x] += static_cast<float>(values.data.values[at]);
  }
  for (size_t x = 0; x < g.written.size(); ++x) {
    note_written(m, s, g.written[x]);
    if (m.algebra)
      g.exact[x] = exact[x];
    else
      g.data.values[x] = round_to(g.data.dtype, sums[x]);
  }
}

Next exec_sum_over(Machine& m, Agent&, const Stmt& s) {
  return outside(m, s, "the pass behind the kernel");
}

}  // namespace kw::exec
