// Maps: a scalar expression for every element. The lambda takes the element, then (map_at, map_real)
// its global coordinates, then one value of each row vector that follows.
#pragma once
#include "../tile/tiles.cuh"
namespace kw {

template <int C> KW_DEVICE void fill(Accumulator<real, 64, C>& t, real v) {
#pragma unroll
  for (int n = 0; n < C / 2; ++n) t.x[n] = v;
}
template <template <class, int> class V, int R> KW_DEVICE void fill(V<real, R>& t, real v) {
  for (int r = 0; r < R / 32; ++r) t.x[r] = v;
}

template <int C, class F, class... Vs>
KW_DEVICE void map(Accumulator<real, 64, C>& t, F f, const Vs&... v) {
#pragma unroll
  for (int n = 0; n < C / 2; ++n) t.x[n] = f(t.x[n], v.x[n / 2 % 2]...);
}
template <int C, class F, class... Vs>
KW_DEVICE void map_at(Accumulator<real, 64, C>& t, Origin at, F f, const Vs&... v) {
  const int i = at.i + t.thread_row(), j = at.j + t.thread_column();
#pragma unroll
  for (int n = 0; n < C / 2; ++n)
    t.x[n] = f(t.x[n], i + n / 2 % 2 * 8, j + n / 4 * 8 + n % 2, v.x[n / 2 % 2]...);
}
// Like map_at with coordinates as reals: exact below 2^24, and no conversion for each element.
template <int C, class F, class... Vs>
KW_DEVICE void map_real(Accumulator<real, 64, C>& t, Origin at, F f, const Vs&... v) {
  const real i[2] = {real(at.i + t.thread_row()), real(at.i + t.thread_row() + 8)};
  const real j = real(at.j + t.thread_column());
#pragma unroll
  for (int n = 0; n < C / 2; ++n)
    t.x[n] = f(t.x[n], i[n / 2 % 2], j + real(n / 4 * 8 + n % 2), v.x[n / 2 % 2]...);
}
template <template <class, int> class V, int R, class F, class... Vs>
KW_DEVICE void map_rows(V<real, R>& t, F f, const Vs&... v) {
#pragma unroll
  for (int r = 0; r < R / 32; ++r) t.x[r] = f(t.x[r], v.x[r]...);
}

// From accumulator to operand, rounding to bf16, to nearest even.
template <int C> KW_DEVICE void reshape(Operand<bf16, 64, C>& p, const Accumulator<real, 64, C>& s) {
#pragma unroll
  for (int n = 0; n < C / 4; ++n) p.x[n] = ptx::pack_bf16(s.x[2 * n], s.x[2 * n + 1]);
}

}  // namespace kw
