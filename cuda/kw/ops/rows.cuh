// Reductions along a row, and the running reference of a softmax.
#pragma once
#include "../tile/tiles.cuh"
namespace kw {

// m = max(m, maximum of the row).
template <int R, int C> KW_DEVICE void row_max(RowVector<real, R>& m, const Accumulator<real, R, C>& t) {
#pragma unroll
  for (int r = 0; r < R / 32; ++r) {
    real a = fmaxf(m.x[r], t.x[t.in_row(r, 0)]), b = t.x[t.in_row(r, 1)];
#pragma unroll
    for (int n = 1; n < C / 8; ++n) {
      a = fmaxf(a, t.x[t.in_row(r, 2 * n)]);
      b = fmaxf(b, t.x[t.in_row(r, 2 * n + 1)]);
    }
    a = fmaxf(a, b);
    a = fmaxf(a, __shfl_xor_sync(0xffffffffu, a, 1));
    m.x[r] = fmaxf(a, __shfl_xor_sync(0xffffffffu, a, 2));
  }
}
// l += sum of the row, each lane its share.
template <int R, int C> KW_DEVICE void row_sum(LaneSum<real, R>& l, const Accumulator<real, R, C>& t) {
#pragma unroll
  for (int r = 0; r < R / 32; ++r) {
    real a = l.x[r] + t.x[t.in_row(r, 0)], b = t.x[t.in_row(r, 1)];
#pragma unroll
    for (int n = 1; n < C / 8; ++n) {
      a += t.x[t.in_row(r, 2 * n)];
      b += t.x[t.in_row(r, 2 * n + 1)];
    }
    l.x[r] = a + b;
  }
}
// l += p, each lane its share.
template <int R> KW_DEVICE void add(LaneSum<real, R>& l, const LaneSum<real, R>& p) {
#pragma unroll
  for (int r = 0; r < R / 32; ++r) l.x[r] += p.x[r];
}
template <int R> KW_DEVICE RowVector<real, R> total(const LaneSum<real, R>& l) {
  RowVector<real, R> v;
#pragma unroll
  for (int r = 0; r < R / 32; ++r) {
    const real a = l.x[r] + __shfl_xor_sync(0xffffffffu, l.x[r], 1);
    v.x[r] = a + __shfl_xor_sync(0xffffffffu, a, 2);
  }
  return v;
}

// The reference m of a running softmax stays unless a score exceeds it by more than slack; then it
// becomes the maximum of the row. factor = exp2((old - new) * scale) is what earlier terms are
// multiplied by: 1 almost always. Returns, alike in every lane of a warp, whether some row's was
// raised, so that a branch on it is uniform.
// The common case costs one three-way integer maximum for two scores: the bits of non-negative
// floats are ordered like integers, and those of negative ones lie below them.
template <int R, int C>
KW_DEVICE bool online_max(RowVector<real, R>& m, RowVector<real, R>& factor, const Accumulator<real, R, C>& t,
                          real slack, real scale) {
  bool over = false;
#pragma unroll
  for (int r = 0; r < R / 32; ++r) {
    int a = __float_as_int(t.x[t.in_row(r, 0)]), b = __float_as_int(t.x[t.in_row(r, 1)]);
#pragma unroll
    for (int n = 1; n < C / 8; ++n) {
      int& top = n % 2 ? a : b;
      top = __vimax3_s32(top, __float_as_int(t.x[t.in_row(r, 2 * n)]), __float_as_int(t.x[t.in_row(r, 2 * n + 1)]));
    }
    const real limit = m.x[r] + slack;
    over |= !(limit >= 0.0f) || max(a, b) > __float_as_int(limit);
    factor.x[r] = 1.0f;
  }
  if (!__any_sync(0xffffffffu, over)) return false;
  const RowVector<real, R> old = m;
  row_max(m, t);
#pragma unroll
  for (int r = 0; r < R / 32; ++r) {
    if (m.x[r] - old.x[r] <= slack) m.x[r] = old.x[r];
    if (m.x[r] != old.x[r]) factor.x[r] = exp2((old.x[r] - m.x[r]) * scale);
  }
  return true;
}

// Whether some row of the warp needs another reference than m: it has none yet, or a lane's share of
// exponentials that were taken relative to it is above limit (or no number). Alike in every lane.
template <int R>
KW_DEVICE bool any_exceeds(const RowVector<real, R>& m, const LaneSum<real, R>& l, real limit) {
  bool over = false;
#pragma unroll
  for (int r = 0; r < R / 32; ++r) over |= !(l.x[r] <= limit) || m.x[r] == minus_infinity;
  return __any_sync(0xffffffffu, over);
}

// Whether some row of the warp has another value than v. Alike in every lane.
template <int R> KW_DEVICE bool any_differs(const RowVector<real, R>& f, real v) {
  bool other = false;
#pragma unroll
  for (int r = 0; r < R / 32; ++r) other |= f.x[r] != v;
  return __any_sync(0xffffffffu, other);
}

}  // namespace kw
