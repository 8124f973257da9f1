// Products of the small algebra (real.cuh): the statements of wgmma.cuh and mma.cuh, done when they end.
// Tiles lie where they always do, and fragments are held by the threads that hold them for the tensor
// cores: a thread computes the elements of its own accumulator, takes the left side from its row's
// four lanes, and reads the right side from shared memory through the tile's own addresses.
#pragma once
#include "../tile/tiles.cuh"
namespace kw {

namespace detail {
KW_DEVICE real load_shared_real(u32 address) {
  unsigned short word;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(word) : "r"(address) : "memory");
  return real::stored(word);
}
// Row `row` and column `column` of a tile.
template <class Tile> KW_DEVICE real element(const Tile& tile, int row, int column) {
  return load_shared_real(tile.chunk(row, column / 8) + column % 8 * 2);
}
// Column k of the thread's row r, of its 16-bit word in the lane that holds it; all lanes ask together.
template <class T, int R, int K> struct LeftOperand {
  const Operand<T, R, K>& tile;
  KW_DEVICE real operator()(int r, int k) const {
    const int word = Accumulator<real, R, K>::in_row(r, k / 8 * 2) / 2;
    const u32 both = __shfl_sync(0xffffffffu, tile.x[word], (threadIdx.x % 32 & ~3) + k % 8 / 2);
    return real::stored(k % 2 ? both >> 16 : both & 0xffff);
  }
};
template <class T, int R, int K> struct LeftTile {
  const SharedTile<T, R, K>& tile;
  KW_DEVICE real operator()(int r, int k) const {
    return element(tile, Accumulator<real, 64, K>::thread_row() + r / 2 * 64 + r % 2 * 8, k);
  }
};
template <class T, int R, int K> struct LeftRows {  // 64 rows of a tile
  const SharedTile<T, R, K>& tile;
  int row;
  KW_DEVICE real operator()(int r, int k) const {
    return element(tile, row + Accumulator<real, 64, K>::thread_row() + r * 8, k);
  }
};
template <class T, int K> struct LeftTransposed {  // 64 columns of a tile of K rows
  const SharedTile<T, K, 64>& tile;
  KW_DEVICE real operator()(int r, int k) const {
    return element(tile, k, Accumulator<real, 64, 64>::thread_row() + r * 8);
  }
};
template <class Tile> struct RightTransposed {
  const Tile& tile;
  KW_DEVICE real operator()(int k, int n) const { return element(tile, n, k); }
};
template <class Tile> struct Right {
  const Tile& tile;
  int column = 0;
  KW_DEVICE real operator()(int k, int n) const { return element(tile, k, column + n); }
};

// acc (+)= left @ right over K columns.
template <int K, int R, int N, class Left, class RightSide>
KW_DEVICE void multiply(Accumulator<real, R, N>& acc, bool add, const Left& left, const RightSide& right) {
#pragma unroll 1
  for (int r = 0; r < R / 32; ++r) {
#pragma unroll 1
    for (int n = 0; n < N / 4; ++n) {
      real& out = acc.x[acc.in_row(r, n)];
      if (!add) out = real(0);
    }
#pragma unroll 1
    for (int k = 0; k < K; ++k) {
      const real a = left(r, k);
#pragma unroll 1
      for (int n = 0; n < N / 4; ++n)
        acc.x[acc.in_row(r, n)] += a * right(k, acc.thread_column() + n / 2 * 8 + n % 2);
    }
  }
  __syncwarp();
}
}  // namespace detail

template <class T, int R, int N, int K>
KW_DEVICE void mma(Accumulator<real, R, N>& acc, const SharedTile<T, R, K>& a, Transposed<SharedTile<T, N, K>> b) {
  detail::multiply<K>(acc, false, detail::LeftTile<T, R, K>{a}, detail::RightTransposed<SharedTile<T, N, K>>{b.tile});
}
template <class T, int R, int N, int K>
KW_DEVICE void mma(Accumulator<real, R, N>& acc, const Operand<T, R, K>& a, Transposed<SharedTile<T, N, K>> b) {
  detail::multiply<K>(acc, false, detail::LeftOperand<T, R, K>{a}, detail::RightTransposed<SharedTile<T, N, K>>{b.tile});
}
template <class T, int R, int N, int K>
KW_DEVICE void mma_add_transposed(Accumulator<real, R, N>& acc, const SharedTile<T, R, K>& a, const SharedTile<T, N, K>& b) {
  detail::multiply<K>(acc, true, detail::LeftTile<T, R, K>{a}, detail::RightTransposed<SharedTile<T, N, K>>{b});
}
template <class T, int R, int N, int K>
KW_DEVICE void mma_add_transposed(Accumulator<real, R, N>& acc, const Operand<T, R, K>& a, const SharedTile<T, N, K>& b) {
  detail::multiply<K>(acc, true, detail::LeftOperand<T, R, K>{a}, detail::RightTransposed<SharedTile<T, N, K>>{b});
}
template <class T, int R, int N, int K>
KW_DEVICE void mma_add(Accumulator<real, R, N>& acc, const Operand<T, R, K>& a, const SharedTile<T, K, N>& b) {
  detail::multiply<K>(acc, true, detail::LeftOperand<T, R, K>{a}, detail::Right<SharedTile<T, K, N>>{b});
}
template <class T, int N, int K>
KW_DEVICE void wgmma(Accumulator<real, 64, N>& acc, Operand<T, 64, K>& a, Transposed<SharedTile<T, N, K>> b) {
  mma(acc, a, b);
}
template <class T, int N, int K>
KW_DEVICE void wgmma(Accumulator<real, 64, N>& acc, const SharedTile<T, 64, K>& a, Transposed<SharedTile<T, N, K>> b) {
  mma(acc, a, b);
}
template <class T, int N, int K>
KW_DEVICE void wgmma_add(Accumulator<real, 64, N>& acc, Operand<T, 64, K>& a, const SharedTile<T, K, N>& b) {
  mma_add(acc, a, b);
}
template <class T, int N, int K>
KW_DEVICE void wgmma_add(Accumulator<real, 64, N>& acc, const SharedTile<T, 64, K>& a, const SharedTile<T, K, N>& b) {
  detail::multiply<K>(acc, true, detail::LeftTile<T, 64, K>{a}, detail::Right<SharedTile<T, K, N>>{b});
}
template <class T, int N, int K>
KW_DEVICE void wgmma_add_transposed(Accumulator<real, 64, N>& acc, const SharedTile<T, 64, K>& a,
                                    Transposed<SharedTile<T, N, K>> b) {
  mma_add_transposed(acc, a, b.tile);
}
template <class T, int N, int K>
KW_DEVICE void wgmma_add_transposed(Accumulator<real, 64, N>& acc, Operand<T, 64, K>& a,
                                    Transposed<SharedTile<T, N, K>> b) {
  mma_add_transposed(acc, a, b.tile);
}
template <class T, int N, int K>
KW_DEVICE void wgmma_add_transposed_a(Accumulator<real, 64, N>& acc, Transposed<SharedTile<T, K, 64>> a,
                                      const SharedTile<T, K, N>& b) {
  detail::multiply<K>(acc, true, detail::LeftTransposed<T, K>{a.tile}, detail::Right<SharedTile<T, K, N>>{b});
}
template <class T, int N, int R, int K>
KW_DEVICE void wgmma_add_rows(Accumulator<real, 64, N>& acc, const SharedTile<T, R, K>& a, int row,
                              const SharedTile<T, K, N>& b) {
  detail::multiply<K>(acc, true, detail::LeftRows<T, R, K>{a, row}, detail::Right<SharedTile<T, K, N>>{b});
}
template <int kPending> KW_DEVICE void wgmma_wait_group() {}
template <class T, int N, int K, int C>
KW_DEVICE void wgmma_add_columns(Accumulator<real, 64, N>& acc, const SharedTile<T, 64, K>& a,
                                 const SharedTile<T, K, C>& b, int column) {
  detail::multiply<K>(acc, true, detail::LeftTile<T, 64, K>{a}, detail::Right<SharedTile<T, K, C>>{b, column});
}
template <class T, int N, int K, int C>
KW_DEVICE void wgmma_add_columns(Accumulator<real, 64, N>& acc, Operand<T, 64, K>& a, const SharedTile<T, K, C>& b,
                                 int column) {
  detail::multiply<K>(acc, true, detail::LeftOperand<T, 64, K>{a}, detail::Right<SharedTile<T, K, C>>{b, column});
}
template <class T, int R, int N, int K, int C>
KW_DEVICE void mma_add_columns(Accumulator<real, R, N>& acc, const SharedTile<T, R, K>& a, const SharedTile<T, K, C>& b,
                               int column) {
  detail::multiply<K>(acc, true, detail::LeftTile<T, R, K>{a}, detail::Right<SharedTile<T, K, C>>{b, column});
}
template <class T, int R, int N, int K, int C>
KW_DEVICE void mma_add_columns(Accumulator<real, R, N>& acc, const Operand<T, R, K>& a, const SharedTile<T, K, C>& b,
                               int column) {
  detail::multiply<K>(acc, true, detail::LeftOperand<T, R, K>{a}, detail::Right<SharedTile<T, K, C>>{b, column});
}
template <int kPending, class... Tiles> KW_DEVICE void wgmma_wait(Tiles&...) {}

}  // namespace kw
