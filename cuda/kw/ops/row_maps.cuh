// Passes over rows. Before the kernel: the rows of q, k or v as their product sees them (a norm, a rotation),
// written once to memory that the kernel then reads in the place of the argument. Behind it: the gradients of
// such rows, from what the kernel has left in memory.
//
// A warp has a row at a time, and lane l the columns 2l and 2l + 1 of every 64: neighbouring lanes read
// neighbouring words, and each writes whole ones. Rows that follow each other go to one warp, so that
// what does not depend on the row (a norm's weights) stays in its registers.
#pragma once
#include "../tile/tensors.cuh"
namespace kw {

// A warp among those of all CTAs, of which there are as many as the launcher was told: below 2^31. Their warps may
// be more than an int holds.
struct Warp {
  i64 index, count;
};
KW_DEVICE Warp warp_of(int) {
  const int warps = blockDim.x / 32;
  return {i64(blockIdx.x) * warps + int(threadIdx.x) / 32, i64(gridDim.x) * warps};
}

struct RowPlace {
  int batch, head, row;
};

namespace detail {
// The rows from `place` on that one warp has.
struct RowsOf {
  RowPlace place;
  int heads, rows, left;
  KW_DEVICE bool operator!=(const RowsOf& end) const { return left != end.left; }
  KW_DEVICE RowPlace operator*() const { return place; }
  KW_DEVICE void operator++() {
    --left;
    if (++place.row < rows) return;
    place.row = 0;
    if (++place.head < heads) return;
    place.head = 0;
    ++place.batch;
  }
};
struct RowRange {
  RowsOf first;
  KW_DEVICE RowsOf begin() const { return first; }
  KW_DEVICE RowsOf end() const { return {{}, 0, 0, 0}; }
};

template <class T, char... D> KW_DEVICE const Tensor<scratch<T>, D...>& rows_of(const Tensor<scratch<T>, D...>& t) {
  return t;
}
template <class T, char... D> KW_DEVICE const Tensor<scratch<T>, D...>& rows_of(const TensorMap<scratch<T>, D...>& t) {
  return t.rows;
}
template <class T, char... D> KW_DEVICE const Tensor<T, D...>& rows_of(const Tensor<T, D...>& t) { return t; }

template <class T, char... D> KW_DEVICE T* row_to_write(const Tensor<scratch<T>, D...>& t, RowPlace at) {
  return t.row_to_write(at.batch, at.head, at.row);
}
template <class T, char... D> KW_DEVICE T* row_to_write(const Tensor<T, D...>& t, RowPlace at) {
  return &t.element(at.batch, at.head, at.row, 0);
}

KW_DEVICE real from_lane_across(real x, int lanes) {
  return __builtin_bit_cast(real, __shfl_xor_sync(~0u, __builtin_bit_cast(u32, x), lanes));
}

// f at this lane's columns, two neighbours at a time.
template <int C, class F> KW_DEVICE void each_pair(F f) {
  static_assert(C % 2 == 0, "columns are read and written two at a time");
#pragma unroll
  for (int first = 0; first < C; first += 64) {
    const int j = first + 2 * int(threadIdx.x % 32);
    if (C - first >= 64 || j < C) f(j);
  }
}

// f at the first of this lane's columns, four neighbours at a time.
template <int C, class F> KW_DEVICE void each_four(F f) {
  static_assert(C % 4 == 0, "columns are read and written four at a time");
#pragma unroll
  for (int first = 0; first < C; first += 128) {
    const int j = first + 4 * int(threadIdx.x % 32);
    if (C - first >= 128 || j < C) f(j);
  }
}

// What the lanes have of a sum, added up: in every one of them.
KW_DEVICE real over_lanes(real x) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) x += from_lane_across(x, lanes);
  return x;
}

KW_DEVICE void write_pair(float* to, real a, real b) {
  *reinterpret_cast<float2*>(to) = make_float2(to_memory(a), to_memory(b));
}
template <class T> KW_DEVICE void write_pair(T* to, real a, real b) {
  *reinterpret_cast<u32*>(to) = ptx::pack(T{}, a, b);
}
}  // namespace detail

// This warp's share of the rows of a tensor: as many rows one after the other as everybody has.
template <class Rows> KW_DEVICE detail::RowRange each_row(const Rows& of, Warp w) {
  const auto& t = detail::rows_of(of);
  const i64 all = i64(t.extent[0]) * t.extent[1] * t.extent[2], share = (all - 1) / w.count + 1;
  const i64 first = w.index < all / share + 1 ? w.index * share : all, left = all > first ? all - first : 0;
  const i64 block = first / t.extent[2];
  return {{{int(block / t.extent[1]), int(block % t.extent[1]), int(first % t.extent[2])}, t.extent[1], t.extent[2],
           int(left < share ? left : share)}};
}

// The sum over the columns of a row, in every lane.
template <int C, class F> KW_DEVICE real sum(F f) {
  real total = 0.0f;
  detail::each_pair<C>([&](int j) {
    total += f(j);
    total += f(j + 1);
  });
  return detail::over_lanes(total);
}

// The sum over the columns of the products of two rows, of which a lane reads four neighbours at a time: rows begin
// at multiples of 16 bytes. 0 behind the last row.
template <int C, class T, char... D>
KW_DEVICE real dot_row(const Tensor<const float, D...>& a, const Tensor<const T, D...>& b, RowPlace at) {
#ifdef KW_EXACT
  return sum<C>([&](int j) { return a(at.batch, at.head, at.row, j) * b(at.batch, at.head, at.row, j); });
#else
  real total = 0.0f;
  if (at.row < a.extent[2]) {
    const float* const x = &a.element(at.batch, at.head, at.row, 0);
    const T* const y = &b.element(at.batch, at.head, at.row, 0);
    detail::each_four<C>([&](int j) {
      const float4 v = __ldg(reinterpret_cast<const float4*>(x + j));
      const uint2 words = __ldg(reinterpret_cast<const uint2*>(y + j));
      total += v.x * from_word(T{}, words.x, 0) + v.y * from_word(T{}, words.x, 1);
      total += v.z * from_word(T{}, words.y, 0) + v.w * from_word(T{}, words.y, 1);
    });
  }
  return detail::over_lanes(total);
#endif
}

// Rounds to the tensor's type, to nearest even. Floats are read by nothing of this pass: lanes have others of them.
template <int C, class Rows, class F> KW_DEVICE void write_row(const Rows& to, RowPlace at, F f) {
  const auto& t = detail::rows_of(to);
  auto* const row = detail::row_to_write(t, at);
  if constexpr (sizeof(*row) == 4 && C % 4 == 0)
    detail::each_four<C>([&](int j) {
      *reinterpret_cast<float4*>(row + j) =
          make_float4(to_memory(f(j)), to_memory(f(j + 1)), to_memory(f(j + 2)), to_memory(f(j + 3)));
    });
  else
    detail::each_pair<C>([&](int j) { detail::write_pair(row + j, f(j), f(j + 1)); });
}
// One value a row, which every lane has.
template <char... D> KW_DEVICE void write_value(const Tensor<scratch<float>, D...>& to, RowPlace at, real value) {
  static_assert(sizeof...(D) == 3, "one float a row");
  if (threadIdx.x % 32 == 0) to.row_to_write(at.batch, at.head, 0)[at.row] = to_memory(value);
}

}  // namespace kw
