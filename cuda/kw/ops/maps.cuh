// Maps: a scalar expression for every element. The lambda takes the element, then (map_at, map_real)
// its global coordinates, then one value of each row vector that follows.
#pragma once
#include "../tile/tiles.cuh"
namespace kw {

template <int R, int C> KW_DEVICE void fill(Accumulator<real, R, C>& t, real v) {
#pragma unroll
  for (int n = 0; n < t.count; ++n) t.x[n] = v;
}
template <template <class, int> class V, int R> KW_DEVICE void fill(V<real, R>& t, real v) {
  for (int r = 0; r < R / 32; ++r) t.x[r] = v;
}

template <int R, int C, class F, class... Vs>
KW_DEVICE void map(Accumulator<real, R, C>& t, F f, const Vs&... v) {
#pragma unroll
  for (int n = 0; n < t.count; ++n) t.x[n] = f(t.x[n], v.x[t.row(n)]...);
}
template <int R, int C, class F, class... Vs>
KW_DEVICE void map_at(Accumulator<real, R, C>& t, Origin at, F f, const Vs&... v) {
  const int i = at.i + t.thread_row(), j = at.j + t.thread_column();
#pragma unroll
  for (int n = 0; n < t.count; ++n)
    t.x[n] = f(t.x[n], i + t.below(n), j + t.column(n), v.x[t.row(n)]...);
}
// Like map_at with coordinates as reals: exact below 2^24, and no conversion for each element.
template <int R, int C, class F, class... Vs>
KW_DEVICE void map_real(Accumulator<real, R, C>& t, Origin at, F f, const Vs&... v) {
  const real i = real(at.i + t.thread_row()), j = real(ptx::not_earlier(at.j + t.thread_column()));
#pragma unroll
  for (int n = 0; n < t.count; ++n)
    t.x[n] = f(t.x[n], coordinate{i, t.below(n)}, coordinate{j, t.column(n)}, v.x[t.row(n)]...);
}
template <template <class, int> class V, int R, class F, class... Vs>
KW_DEVICE void map_rows(V<real, R>& t, F f, const Vs&... v) {
#pragma unroll
  for (int r = 0; r < R / 32; ++r) t.x[r] = f(t.x[r], v.x[r]...);
}

// From accumulator to operand, rounding to its type, to nearest even.
template <class T, int R, int C>
KW_DEVICE void reshape(Operand<T, R, C>& p, const Accumulator<real, R, C>& s) {
#pragma unroll
  for (int n = 0; n < p.count; ++n) p.x[n] = ptx::pack(T{}, s.x[2 * n], s.x[2 * n + 1]);
}

}  // namespace kw
