// Passes over rows. Before the kernel: the rows of q, k or v as their product sees them (a norm, a rotation),
// written once to memory that the kernel then reads in the place of the argument. Behind it: the gradients of
// such rows, from what the kernel has left in memory.
//
// A warp has four rows at a time, each with eight lanes, of which lane l has the columns 2l and 2l + 1 of every
// 16: neighbouring lanes read neighbouring words, and each writes whole ones. Rows that follow each other go to
// one warp, so that what does not depend on the row (a norm's weights) stays in its registers. Lanes of
// different rows may be at different places of the text: they exchange nothing.
#pragma once
#include "../tile/tensors.cuh"
namespace kw {

// A warp among those of all CTAs.
struct Warp {
  int index, count;
};
KW_DEVICE Warp warp_of(int blocks) {
  const int warps = blockDim.x / 32;
  return {int(blockIdx.x) * warps + int(threadIdx.x) / 32, blocks * warps};
}

struct RowPlace {
  int batch, head, row;
};

namespace detail {
constexpr int kLanes = 8, kAtOnce = 32 / kLanes;  // of a row, rows
KW_DEVICE int lane_of_row() { return threadIdx.x % kLanes; }
KW_DEVICE u32 lanes_of_row() { return ((1u << kLanes) - 1) << (threadIdx.x % 32 / kLanes * kLanes); }

// Every fourth of the rows of one warp, from `place` on.
struct RowsOf {
  RowPlace place;
  int heads, rows, left;
  KW_DEVICE bool operator!=(const RowsOf&) const { return left > 0; }
  KW_DEVICE RowPlace operator*() const { return place; }
  KW_DEVICE void operator++() {
    left -= kAtOnce;
    place.row += kAtOnce;
    while (place.row >= rows) {
      place.row -= rows;
      if (++place.head < heads) continue;
      place.head = 0;
      ++place.batch;
    }
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
  return __builtin_bit_cast(real, __shfl_xor_sync(lanes_of_row(), __builtin_bit_cast(u32, x), lanes));
}

// What the row's lanes have of a sum, added up: in every one of them.
KW_DEVICE real over_lanes(real x) {
#pragma unroll
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) x += from_lane_across(x, lanes);
  return x;
}

// f at this lane's columns, two neighbours at a time.
template <int C, class F> KW_DEVICE void each_pair(F f) {
  static_assert(C % 2 == 0, "columns are read and written two at a time");
#pragma unroll
  for (int first = 0; first < C; first += 2 * kLanes) {
    const int j = first + 2 * lane_of_row();
    if (C - first >= 2 * kLanes || j < C) f(j);
  }
}

// f at the first of this lane's columns, four neighbours at a time.
template <int C, class F> KW_DEVICE void each_four(F f) {
#pragma unroll
  for (int first = 0; first < C; first += 4 * kLanes) {
    const int j = first + 4 * lane_of_row();
    if (C - first >= 4 * kLanes || j < C) f(j);
  }
}

KW_DEVICE void write_pair(float* to, real a, real b) {
  *reinterpret_cast<float2*>(to) = make_float2(to_memory(a), to_memory(b));
}
template <class T> KW_DEVICE void write_pair(T* to, real a, real b) {
  *reinterpret_cast<u32*>(to) = ptx::pack(T{}, a, b);
}
}  // namespace detail

// This warp's share of the rows of a tensor: as many rows one after the other as everybody has, four at a time.
template <class Rows> KW_DEVICE detail::RowRange each_row(const Rows& of, Warp w) {
  const auto& t = detail::rows_of(of);
  const int all = t.extent[0] * t.extent[1] * t.extent[2];
  const int share = (all - 1) / w.count + 1, end = min((w.index + 1) * share, all);
  const int first = w.index * share + int(threadIdx.x) % 32 / detail::kLanes, block = first / t.extent[2];
  return {{{block / t.extent[1], block % t.extent[1], first % t.extent[2]}, t.extent[1], t.extent[2],
           end - first}};
}

// The sum over the columns of a row, in every lane of it.
template <int C, class F> KW_DEVICE real sum(F f) {
  real total = 0.0f;
  detail::each_pair<C>([&](int j) {
    total += f(j);
    total += f(j + 1);
  });
  return detail::over_lanes(total);
}

// The sum over the columns of the products of two rows, read 16 bytes at a time and more: rows begin at multiples
// of them. 0 behind the last row.
template <int C, class T, char... D>
KW_DEVICE real dot_row(const Tensor<const float, D...>& a, const Tensor<const T, D...>& b, RowPlace at) {
  static_assert(C % 8 == 0, "a lane has eight neighbours");
#ifdef KW_EXACT
  return sum<C>([&](int j) { return a(at.batch, at.head, at.row, j) * b(at.batch, at.head, at.row, j); });
#else
  real total = 0.0f;
  if (at.row < a.extent[2]) {
    const float4* const x = reinterpret_cast<const float4*>(&a.element(at.batch, at.head, at.row, 0));
    const uint4* const y = reinterpret_cast<const uint4*>(&b.element(at.batch, at.head, at.row, 0));
#pragma unroll
    for (int first = 0; first < C / 8; first += detail::kLanes) {
      const int j = first + detail::lane_of_row();
      if (C / 8 - first < detail::kLanes && j >= C / 8) break;
      const float4 low = __ldg(x + 2 * j), high = __ldg(x + 2 * j + 1);
      const uint4 words = __ldg(y + j);
      total += low.x * from_word(T{}, words.x, 0) + low.y * from_word(T{}, words.x, 1);
      total += low.z * from_word(T{}, words.y, 0) + low.w * from_word(T{}, words.y, 1);
      total += high.x * from_word(T{}, words.z, 0) + high.y * from_word(T{}, words.z, 1);
      total += high.z * from_word(T{}, words.w, 0) + high.w * from_word(T{}, words.w, 1);
    }
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
// One value a row, which every lane of it has.
template <char... D> KW_DEVICE void write_value(const Tensor<scratch<float>, D...>& to, RowPlace at, real value) {
  static_assert(sizeof...(D) == 3, "one float a row");
  if (detail::lane_of_row() == 0) to.row_to_write(at.batch, at.head, 0)[at.row] = to_memory(value);
}

}  // namespace kw
