// Reductions along rows, and the running reference of a softmax.
//
// Lane q of a row's four holds columns 8n + 2q and 8n + 2q + 1. Sums run as the lanes run them:
// even and odd columns apart, ascending, then together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "exec/exact.h"
#include "exec/ops/exec_ops.h"

namespace kw::exec {

using tl::Stmt;

namespace {

bool fits(Machine& m, const Stmt& s, const Row& row, const Tile& tile, int lanes) {
  if (row.rows == tile.rows && row.lanes == lanes && tile.columns % 8 == 0) return true;
  m.faults.raise(
      "exec.shape", &s,
      fmt::format("{}: a {} of {} rows and a tile of {} rows, {} columns", cite(s),
                  row.lanes == 1 ? "row vector" : "lane sum", row.rows, tile.rows, tile.columns));
  return false;
}

// As fmaxf: a NaN loses against a number.
float maximum(const Tile& t, int r, float start) {
  const float* x = t.row(r);
  for (int c = 0; c < t.columns; ++c) start = std::fmax(start, x[c]);
  return start;
}

// A warp holds 16 rows and raises its references together: only when some row's score exceeds the
// reference by more than slack (or the reference is still below -slack, where the device's integer
// comparison cannot tell) are the rows looked at one by one.
bool online_max(const Tile& scores, float slack, float scale, Row& reference, Row& factor) {
  bool raised = false;
  for (int warp = 0; warp < scores.rows; warp += 16) {
    const int end = std::min(warp + 16, scores.rows);
    bool over = false;
    for (int r = warp; r < end; ++r) {
      const float limit = reference.x[r] + slack;
      over |= !(limit >= 0) || maximum(scores, r, -INFINITY) > limit;
      factor.x[r] = 1;
    }
    raised |= over;
    for (int r = warp; over && r < end; ++r) {
      float& now = reference.x[r];
      const float old = now, top = maximum(scores, r, old);
      if (!(top - old <= slack)) now = top;
      if (now != old) factor.x[r] = static_cast<float>(std::exp2(double((old - now) * scale)));
    }
  }
  return raised;
}

}  // namespace

Next exec_row_max(Machine& m, Agent& a, const Stmt& s) {
  const auto row = row_of(m, a, s, tl::Hole::max, true);
  const auto tile = tile_of(m, a, s, tl::Hole::src, Role::accumulator, true);
  if (!row || !tile || !fits(m, s, *row, *tile, 1)) return Next::on;
  if (m.algebra) {
    exact_row_max(m, *tile, *row);
    return Next::on;
  }
  for (int r = 0; r < row->rows; ++r) row->x[r] = maximum(*tile, r, row->x[r]);
  return Next::on;
}

Next exec_row_sum(Machine& m, Agent& a, const Stmt& s) {
  const auto row = row_of(m, a, s, tl::Hole::sum, true);
  const auto tile = tile_of(m, a, s, tl::Hole::src, Role::accumulator, true);
  if (!row || !tile || !fits(m, s, *row, *tile, 4)) return Next::on;
  row->of = Seen(tile->scores);
  if (m.algebra) {
    exact_row_sum(m, *tile, *row);
    return Next::on;
  }
  for (int r = 0; r < row->rows; ++r)
    for (int q = 0; q < 4; ++q) {
      const float* x = tile->row(r) + 2 * q;
      float& l = row->x[4 * size_t(r) + q];
      float even = l + x[0], odd = x[1];
      for (int c = 8; c < tile->columns; c += 8) {
        even += x[c];
        odd += x[c + 1];
      }
      l = even + odd;
    }
  return Next::on;
}

namespace {
// Null: a fault was reported.
Flag* flag_of(Machine& m, Agent& a, const Stmt& s) {
  Binding* flag = a.scope()->find(s.flag());
  if (flag && std::holds_alternative<Flag>(*flag)) return &std::get<Flag>(*flag);
  m.faults.raise("exec.name", &s, fmt::format("{} is not a flag", s.flag()));
  return nullptr;
}
}  // namespace

Next exec_add(Machine& m, Agent& a, const Stmt& s) {
  const auto sum = row_of(m, a, s, tl::Hole::sum, true);
  const auto more = row_of(m, a, s, tl::Hole::part, true);
  if (!sum || !more) return Next::on;
  if (sum->rows != more->rows || sum->lanes != 4 || more->lanes != 4) {
    m.faults.raise(
        "exec.shape", &s,
        fmt::format("{}: lane sums of {} and of {} rows", cite(s), sum->rows, more->rows));
    return Next::on;
  }
  if (m.algebra)
    exact_add(m, *more, *sum);
  else
    for (size_t n = 0; n < sum->x.size(); ++n) sum->x[n] += more->x[n];
  return Next::on;
}

Next exec_any_exceeds(Machine& m, Agent& a, const Stmt& s) {
  const auto reference = row_of(m, a, s, tl::Hole::max, true);
  const auto share = row_of(m, a, s, tl::Hole::sum, true);
  const float limit = float(real_of(context(m, a, s), s.threshold()).x);
  Flag* flag = flag_of(m, a, s);
  if (m.faults.any()) return Next::on;
  if (reference->rows != share->rows || reference->lanes != 1 || share->lanes != 4) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{}: a row vector of {} rows and a lane sum of {} rows", cite(s),
                               reference->rows, share->rows));
    return Next::on;
  }
  bool over = m.algebra && exact_exceeds(m, *reference);
  for (int r = 0; !m.algebra && r < reference->rows; ++r) {
    over |= reference->x[r] == -INFINITY;
    for (int lane = 0; lane < 4; ++lane) over |= !(share->x[4 * size_t(r) + lane] <= limit);
  }
  *flag = {true, over, share->of};
  return Next::on;
}

// A flag of no scores: whoever asks what was raised has been told the factor.
Next exec_any_differs(Machine& m, Agent& a, const Stmt& s) {
  const auto row = row_of(m, a, s, tl::Hole::src, true);
  const Value value = real_of(context(m, a, s), s.threshold());
  Flag* flag = flag_of(m, a, s);
  if (m.faults.any() || !row) return Next::on;
  bool other = false;
  if (m.algebra)
    for (const exact::Element& e : row->e) other |= !m.algebra->equal(e, value.e).holds;
  else
    for (float x : row->x) other |= x != float(value.x);
  *flag = {true, other, Seen()};
  return Next::on;
}

Next exec_online_max(Machine& m, Agent& a, const Stmt& s) {
  const auto reference = row_of(m, a, s, tl::Hole::max, true);
  const auto factor = row_of(m, a, s, tl::Hole::alpha, false);
  const auto tile = tile_of(m, a, s, tl::Hole::src, Role::accumulator, true);
  const Context c = context(m, a, s);
  const Value slack = real_of(c, s.threshold()), scale = real_of(c, s.scale());
  Flag* flag = flag_of(m, a, s);
  if (m.faults.any() || !fits(m, s, *reference, *tile, 1) || !fits(m, s, *factor, *tile, 1))
    return Next::on;
  const bool raised = m.algebra
                          ? exact_raise(m, *tile, scale.e, *reference, *factor)
                          : online_max(*tile, float(slack.x), float(scale.x), *reference, *factor);
  factor->defined = true;
  *flag = {true, raised, Seen(tile->scores)};
  return Next::on;
}

}  // namespace kw::exec
