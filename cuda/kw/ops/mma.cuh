// Products that each warp issues for its own 16 rows of every 64 (mma, sm_75 and later): done, for the
// text, when the statement is. The right operand is read from shared memory; what is read of it once
// serves all the rows that a warp has, so a warpgroup of 128 rows reads half as much for each as one of
// 64.
#pragma once
#include "../ptx/mma.cuh"
#include "../tile/tiles.cuh"
namespace kw {

namespace detail {
// What a lane asks ldmatrix for: row `row` of a tile and the 16 bytes `chunk`. Another chunk of the
// same panel is one exclusive-or away, other panels and other groups of 8 rows lie at constant
// distances.
template <class T, int R, int C> struct LanePlace {
  u32 first;
  KW_DEVICE LanePlace(const SharedTile<T, R, C>& tile, int row, int chunk) : first(tile.chunk(row, chunk)) {}
  // `rows` further down (a multiple of 8) and `chunks` to the right (a multiple of 2).
  KW_DEVICE u32 at(int rows, int chunks) const {
    using Tile = SharedTile<T, R, C>;
    constexpr int in_panel = Tile::panel / 8;
    return (first ^ (chunks % in_panel << 4)) + chunks / in_panel * Tile::panel_bytes + rows * Tile::pitch;
  }
};
// Where a product takes its left operand from: 16 rows and 16 columns at a time.
template <class T, int R, int C> struct LeftRegisters {
  const Operand<T, R, C>& tile;
  KW_DEVICE void get(u32 (&a)[4], int r, int k) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = tile.x[r * (C / 4) + k * 4 + i];
  }
};
template <class T, int R, int C> struct LeftShared {
  LanePlace<T, R, C> place;
  KW_DEVICE void get(u32 (&a)[4], int r, int k) const {
    ptx::ldmatrix_x4(place.at(r * 64, k * 2), a[0], a[1], a[2], a[3]);
  }
};
template <class T, int R, int C> KW_DEVICE LeftRegisters<T, R, C> left(const Operand<T, R, C>& a) { return {a}; }
template <class T, int R, int C> KW_DEVICE LeftShared<T, R, C> left(const SharedTile<T, R, C>& a) {
  const int lane = ptx::thread_index() % 32;
  return {{a, int(ptx::thread_index() % 128 / 32 * 16 + lane % 16), lane / 16}};
}

// Columns k*16 ... of both operands; the first of them overwrite acc.
template <bool kFirst, class T, int R, int N, int K, class Left>
KW_DEVICE void multiply_16(Accumulator<real, R, N>& acc, const Left& from, const LanePlace<T, N, K>& place, int k) {
  const float zero[4] = {};
  u32 a[R / 64][4];
#pragma unroll
  for (int r = 0; r < R / 64; ++r) from.get(a[r], r, k);
#pragma unroll
  for (int n = 0; n < N / 16; ++n) {
    u32 b0, b1, c0, c1;
    ptx::ldmatrix_x4(place.at(n * 16, k * 2), b0, b1, c0, c1);
#pragma unroll
    for (int r = 0; r < R / 64; ++r) {
      float* d = acc.x + r * (N / 2) + n * 8;
      ptx::mma(T{}, d, a[r], b0, b1, kFirst ? zero : d);
      ptx::mma(T{}, d + 4, a[r], c0, c1, kFirst ? zero : d + 4);
    }
  }
}
// kUnroll 2: ptxas reads no further ahead than two steps. It would read as far as there are registers,
// and what lives around the product would spill.
template <int kUnroll, bool kAdds, class T, int R, int N, int K, class Left>
KW_DEVICE void multiply_transposed(Accumulator<real, R, N>& acc, const Left& from, const SharedTile<T, N, K>& b) {
  const int lane = ptx::thread_index() % 32;
  const LanePlace<T, N, K> place(b, lane / 16 * 8 + lane % 8, lane / 8 % 2);
  multiply_16<!kAdds>(acc, from, place, 0);
#pragma unroll kUnroll
  for (int k = 1; k < K / 16; ++k) multiply_16<false>(acc, from, place, k);
}
}  // namespace detail

// acc = a @ b.T: a [R, K] in shared memory or in registers, b [N, K] in shared memory.
template <class T, int R, int N, int K>
KW_DEVICE void mma(Accumulator<real, R, N>& acc, const SharedTile<T, R, K>& a, Transposed<SharedTile<T, N, K>> b) {
  detail::multiply_transposed<2, false>(acc, detail::left(a), b.tile);
}
template <class T, int R, int N, int K>
KW_DEVICE void mma(Accumulator<real, R, N>& acc, const Operand<T, R, K>& a, Transposed<SharedTile<T, N, K>> b) {
  detail::multiply_transposed<K / 16, false>(acc, detail::left(a), b.tile);  // registers have constant numbers
}
// acc += a @ b.T: as mma, on what is there.
template <class T, int R, int N, int K>
KW_DEVICE void mma_add_transposed(Accumulator<real, R, N>& acc, const SharedTile<T, R, K>& a, const SharedTile<T, N, K>& b) {
  detail::multiply_transposed<2, true>(acc, detail::left(a), b);
}
template <class T, int R, int N, int K>
KW_DEVICE void mma_add_transposed(Accumulator<real, R, N>& acc, const Operand<T, R, K>& a, const SharedTile<T, N, K>& b) {
  detail::multiply_transposed<K / 16, true>(acc, detail::left(a), b);
}
namespace detail {
// acc += a @ b, of b the columns from chunk `chunk` on, 8 columns each.
template <class T, int R, int C, int K, int N, class Left>
KW_DEVICE void multiply_columns(Accumulator<real, R, C>& acc, const Left& from, const SharedTile<T, K, N>& b, int chunk) {
  constexpr int kPanel = SharedTile<T, K, N>::panel;
  static_assert(C <= N && (C % kPanel == 0 || C * 2 == kPanel), "whole panels of the tile, or half of one");
  const int lane = ptx::thread_index() % 32;
  const LanePlace<T, K, N> place(b, lane % 16, chunk + lane / 16);
#pragma unroll
  for (int k = 0; k < K / 16; ++k) {
    u32 a[R / 64][4];
#pragma unroll
    for (int r = 0; r < R / 64; ++r) from.get(a[r], r, k);
#pragma unroll
    for (int n = 0; n < C / 16; ++n) {
      u32 b0, b1, c0, c1;
      ptx::ldmatrix_x4_transposed(place.at(k * 16, n * 2), b0, b1, c0, c1);
#pragma unroll
      for (int r = 0; r < R / 64; ++r) {
        float* d = acc.x + r * (C / 2) + n * 8;
        ptx::mma(T{}, d, a[r], b0, b1, d);
        ptx::mma(T{}, d + 4, a[r], c0, c1, d + 4);
      }
    }
  }
}
}  // namespace detail
// acc += a @ b: a [R, K] in registers, b [K, N] in shared memory.
template <class T, int R, int N, int K>
KW_DEVICE void mma_add(Accumulator<real, R, N>& acc, const Operand<T, R, K>& a, const SharedTile<T, K, N>& b) {
  detail::multiply_columns(acc, detail::left(a), b, 0);
}
// The same of columns `column` ... of b, whole panels of it or half of one; a [R, K] in shared memory or in registers.
template <class T, int R, int C, int K, int N>
KW_DEVICE void mma_add_columns(Accumulator<real, R, C>& acc, const SharedTile<T, R, K>& a, const SharedTile<T, K, N>& b,
                               int column) {
  detail::multiply_columns(acc, detail::left(a), b, column / 8);
}
template <class T, int R, int C, int K, int N>
KW_DEVICE void mma_add_columns(Accumulator<real, R, C>& acc, const Operand<T, R, K>& a, const SharedTile<T, K, N>& b,
                               int column) {
  detail::multiply_columns(acc, detail::left(a), b, column / 8);
}

}  // namespace kw
