// Lines: a whole row of a tensor in a warpgroup's registers, for what needs all of its columns at once (a
// norm). No products and no shared tiles: 16-byte loads, sums along the row, maps, 16-byte stores.
//
// A warpgroup has one row at a time. What is wanted of memory is that many rows are under way: rows of many
// warpgroups, which share a multiprocessor because each needs few registers.
#pragma once
#include "../tile/tensors.cuh"
#include "../tile/tiles.cuh"
#include "maps.cuh"
#include "row_maps.cuh"
#include "warpgroups.cuh"
namespace kw {

namespace detail {
// The thread's n-th column of a line, and the n-th and the next.
template <class T, int C> KW_DEVICE real at_line(const Line<T, C>& v, int n) {
  return from_word(T{}, v.x[n / 2], n % 2);
}
template <int C> KW_DEVICE real at_line(const Line<real, C>& v, int n) { return v.x[n]; }
template <class T, int C> KW_DEVICE void put_line(Line<T, C>& t, int n, real a, real b) {
  t.x[n / 2] = ptx::pack(T{}, a, b);
}
template <int C> KW_DEVICE void put_line(Line<real, C>& t, int n, real a, real b) {
  t.x[n] = a;
  t.x[n + 1] = b;
}
// Calls f at every eighth of the thread's columns that the row has: each is the first of eight.
template <class L, class F> KW_DEVICE void each_eight(F f) {
#pragma unroll
  for (int n = 0; n < L::count; n += 8)
    if (L::all(n) || L::column(n) < L::columns) f(n, L::column(n));
}
}  // namespace detail

// What the tensor's row that row_of names has at all columns: eight neighbours by one load of 16 bytes
// where rows are vectors of memory, else one by one.
template <class T, int C, class F> KW_DEVICE void set_line(Line<T, C>& t, F row_of) {
  const TensorRow<const T> row = row_of();
  if (row.apart == sizeof(T) && u64(row.data) % 16 == 0 && row.last == C - 1) {
    detail::each_eight<Line<T, C>>([&](int n, int j) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(row.data + j));
      u32* const x = t.x + n / 2;
      x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
    });
  } else {
    detail::each_eight<Line<T, C>>([&](int n, int j) {
#pragma unroll
      for (int k = 0; k < 8; k += 2) t.x[(n + k) / 2] = detail::pair_at(row, j + k);
    });
  }
}
template <int C, class F> KW_DEVICE void set_line(Line<real, C>& t, F row_of) {
  const TensorRow<const float> row = row_of();
  detail::each_eight<Line<real, C>>([&](int n, int j) {
#pragma unroll
    for (int k = 0; k < 8; ++k) t.x[n + k] = from_memory(row.at(j + k));
  });
}

// Computes every column anew from lines, and rounds it to the line's type, to nearest even.
template <class T, int C, class F, class... Ls> KW_DEVICE void map_line(Line<T, C>& t, F f, const Ls&... v) {
#pragma unroll
  for (int n = 0; n < t.count; n += 2)
    detail::put_line(t, n, f(detail::at_line(v, n)...), f(detail::at_line(v, n + 1)...));
}

// The sum over all columns, in every thread of the warpgroup: each adds its own in turn, five shuffles make
// one number of a warp's 32, and the four warps exchange theirs.
template <class F, class L, class... Ls> KW_DEVICE real sum_line(F f, const L& first, const Ls&... v) {
  __shared__ real parts[8][4];
  real total = 0.0f;
  detail::each_eight<L>([&](int n, int) {
#pragma unroll
    for (int k = n; k < n + 8; ++k) total += f(detail::at_line(first, k), detail::at_line(v, k)...);
  });
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) total += detail::from_lane_across(total, lanes);
  const int warpgroup = threadIdx.x / 128;
  real(&part)[4] = parts[warpgroup];
  if (threadIdx.x % 32 == 0) part[threadIdx.x % 128 / 32] = total;
  sync_warpgroup(warpgroup);
  total = (part[0] + part[1]) + (part[2] + part[3]);
  sync_warpgroup(warpgroup);  // the next sum writes where this one has read
  return total;
}

// Writes the row; rows past the end of the tensor are not written.
template <class T, int C, char... Dims>
KW_DEVICE void store_line(const Line<T, C>& from, const Tensor<T, Dims...>& to, Coords at) {
  if (at.row >= to.extent[2]) return;
  T* const row = &to.element(at.batch, at.head, at.row, 0);
  if (to.stride[3] == 1 && u64(row) % 16 == 0) {
    detail::each_eight<Line<T, C>>([&](int n, int j) {
      const u32* const x = from.x + n / 2;
      *reinterpret_cast<uint4*>(row + j) = uint4{x[0], x[1], x[2], x[3]};
    });
  } else {
    detail::each_eight<Line<T, C>>([&](int n, int j) {
#pragma unroll
      for (int k = 0; k < 8; ++k)
        row[(j + k) * to.stride[3]].bits = static_cast<unsigned short>(from.x[(n + k) / 2] >> k % 2 * 16);
    });
  }
}

}  // namespace kw
