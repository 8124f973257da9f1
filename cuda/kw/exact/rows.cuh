// The statements of rows.cuh in the small algebra (real.cuh). A reference may be anything, since no
// result depends on it; here it is the row's largest word, which rises often enough that both arms of
// `if (raised)` run.
#pragma once
#include "../tile/tiles.cuh"
namespace kw {

namespace detail {
KW_DEVICE real from_lane(real x, int lanes) { return real::of(__shfl_xor_sync(0xffffffffu, x.bits, lanes)); }
}  // namespace detail

template <int R, int C> KW_DEVICE void row_max(RowVector<real, R>& m, const Accumulator<real, R, C>& t) {
#pragma unroll 1
  for (int r = 0; r < R / 32; ++r) {
    real a = m.x[r];
#pragma unroll 1
    for (int n = 0; n < C / 4; ++n) a = max(a, t.x[t.in_row(r, n)]);
    a = max(a, detail::from_lane(a, 1));
    m.x[r] = max(a, detail::from_lane(a, 2));
  }
}
template <int R, int C> KW_DEVICE void row_sum(LaneSum<real, R>& l, const Accumulator<real, R, C>& t) {
#pragma unroll 1
  for (int r = 0; r < R / 32; ++r)
#pragma unroll 1
    for (int n = 0; n < C / 4; ++n) l.x[r] += t.x[t.in_row(r, n)];
}
template <int R> KW_DEVICE RowVector<real, R> total(const LaneSum<real, R>& l) {
  RowVector<real, R> v;
#pragma unroll 1
  for (int r = 0; r < R / 32; ++r) {
    const real a = l.x[r] + detail::from_lane(l.x[r], 1);
    v.x[r] = a + detail::from_lane(a, 2);
  }
  return v;
}
template <int R, int C>
KW_DEVICE bool online_max(RowVector<real, R>& m, RowVector<real, R>& factor, const Accumulator<real, R, C>& t,
                          real, real scale) {
  const RowVector<real, R> old = m;
  row_max(m, t);
  bool raised = false;
#pragma unroll 1
  for (int r = 0; r < R / 32; ++r) {
    raised |= m.x[r] != old.x[r];
    factor.x[r] = m.x[r] == old.x[r] ? real(1) : exp2((old.x[r] - m.x[r]) * scale);
  }
  return __any_sync(0xffffffffu, raised);
}
template <int R> KW_DEVICE void add(LaneSum<real, R>& l, const LaneSum<real, R>& p) {
#pragma unroll 1
  for (int r = 0; r < R / 32; ++r) l.x[r] += p.x[r];
}
// Order means nothing here: one share in 64 is above any limit.
template <int R>
KW_DEVICE bool any_exceeds(const RowVector<real, R>& m, const LaneSum<real, R>& l, real) {
  bool over = false;
#pragma unroll 1
  for (int r = 0; r < R / 32; ++r) over |= l.x[r].bits % 64 == 0 || m.x[r] == minus_infinity;
  return __any_sync(0xffffffffu, over);
}

template <int R> KW_DEVICE bool any_differs(const RowVector<real, R>& f, real v) {
  bool other = false;
#pragma unroll 1
  for (int r = 0; r < R / 32; ++r) other |= f.x[r] != v;
  return __any_sync(0xffffffffu, other);
}

}  // namespace kw
