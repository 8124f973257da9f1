// Products: 64 rows a warpgroup, asynchronous until a wgmma_wait names the accumulator. Products that add to
// one accumulator follow each other without it; wgmma_wait_group says which of them still read their tiles.
#pragma once
#include "../ptx/wgmma.cuh"
#include "../tile/tiles.cuh"
namespace kw {

namespace detail {
// PTX ISA 9.7.15.5.1.2, matrix descriptor: address, leading and stride offsets in 16 bytes, swizzle (1:
// 128 bytes, 2: 64 bytes). The stride leads to the next 8 rows. Of a tile of 256 columns the compiler is not
// told that the address is the same in each turn of a loop: it would keep the places of all 16 products in registers.
template <class T, int R, int C> KW_DEVICE u64 descriptor(const SharedTile<T, R, C>& t, u32 leading) {
  constexpr u64 swizzle = SharedTile<T, R, C>::pitch == 128 ? 1 : 2;
  u32 address = t.address();
  if constexpr (C >= 256) asm volatile("" : "+r"(address));
  return u64((address & 0x3FFFF) >> 4) | u64(leading >> 4) << 16 |
         u64(8 * SharedTile<T, R, C>::pitch >> 4) << 32 | swizzle << 62;
}
// How far columns 16k ... 16k+15 lie from the start, as a descriptor counts.
template <class Tile> constexpr KW_DEVICE u64 columns_16(int k) {
  constexpr int in_panel = Tile::panel / 16;
  return (k / in_panel * Tile::panel_bytes + k % in_panel * 32) >> 4;
}
// The descriptor of N columns from `column` on: whole panels of the tile, or half of one.
template <int N, class T, int K, int C> KW_DEVICE u64 columns_from(const SharedTile<T, K, C>& b, int column) {
  using Tile = SharedTile<T, K, C>;
  static_assert(N % Tile::panel == 0 || N * 2 == Tile::panel, "whole panels of the tile, or half of one");
  const int in_panel = N < Tile::panel ? column % Tile::panel * 2 : 0;  // bytes
  return descriptor(b, Tile::panel_bytes) + u32((column / Tile::panel * Tile::panel_bytes + in_panel) >> 4);
}
// In the compiler's eyes no use of t moves across it.
template <int C> KW_DEVICE void pin(Accumulator<real, 64, C>& t) {
#pragma unroll
  for (int n = 0; n < C / 2; ++n) asm volatile("" : "+f"(t.x[n])::"memory");
}
}  // namespace detail

// acc = a @ b.T, a [64, K] in registers, b [N, K] in shared memory, K contiguous in both.
template <class T, int N, int K>
KW_DEVICE void wgmma(Accumulator<real, 64, N>& acc, Operand<T, 64, K>& a,
                     Transposed<SharedTile<T, N, K>> b) {
  const u64 from = detail::descriptor(b.tile, 16);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<T, N>::template rs<0>(acc.x, a.x[4 * k], a.x[4 * k + 1], a.x[4 * k + 2], a.x[4 * k + 3],
                                     from + detail::columns_16<SharedTile<T, N, K>>(k), k > 0);
  ptx::wgmma_commit();
}
// The same with a in shared memory too, which may be written again after the wgmma_wait.
template <class T, int N, int K>
KW_DEVICE void wgmma(Accumulator<real, 64, N>& acc, const SharedTile<T, 64, K>& a,
                     Transposed<SharedTile<T, N, K>> b) {
  const u64 left = detail::descriptor(a, 16), from = detail::descriptor(b.tile, 16);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<T, N>::template ss<0>(acc.x, left + detail::columns_16<SharedTile<T, 64, K>>(k),
                                     from + detail::columns_16<SharedTile<T, N, K>>(k), k > 0);
  ptx::wgmma_commit();
}
// acc += a @ b, a [64, K] in registers, b [K, N] in shared memory, N contiguous.
template <class T, int N, int K>
KW_DEVICE void wgmma_add(Accumulator<real, 64, N>& acc, Operand<T, 64, K>& a,
                         const SharedTile<T, K, N>& b) {
  const u64 from = detail::descriptor(b, SharedTile<T, K, N>::panel_bytes);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<T, N>::template rs<1>(acc.x, a.x[4 * k], a.x[4 * k + 1], a.x[4 * k + 2], a.x[4 * k + 3],
                                     from + (k * 16 * SharedTile<T, K, N>::pitch >> 4), 1);
  ptx::wgmma_commit();
}
// The same with a in shared memory too, which may be written again after the wait.
template <class T, int N, int K>
KW_DEVICE void wgmma_add(Accumulator<real, 64, N>& acc, const SharedTile<T, 64, K>& a,
                         const SharedTile<T, K, N>& b) {
  const u64 left = detail::descriptor(a, 16), from = detail::descriptor(b, SharedTile<T, K, N>::panel_bytes);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<T, N>::template ss<1>(acc.x, left + detail::columns_16<SharedTile<T, 64, K>>(k),
                                     from + (k * 16 * SharedTile<T, K, N>::pitch >> 4), 1);
  ptx::wgmma_commit();
}
// acc += a.T @ b, both in shared memory, a [K, 64], b [K, N], 64 and N contiguous.
template <class T, int N, int K>
KW_DEVICE void wgmma_add_transposed_a(Accumulator<real, 64, N>& acc, Transposed<SharedTile<T, K, 64>> a,
                                      const SharedTile<T, K, N>& b) {
  const u64 left = detail::descriptor(a.tile, SharedTile<T, K, 64>::panel_bytes),
            from = detail::descriptor(b, SharedTile<T, K, N>::panel_bytes);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<T, N>::template ss<1, 1>(acc.x, left + (k * 16 * SharedTile<T, K, 64>::pitch >> 4),
                                        from + (k * 16 * SharedTile<T, K, N>::pitch >> 4), 1);
  ptx::wgmma_commit();
}
// acc += a @ b[:, column ... column + N - 1], both in shared memory, a [64, K], b [K, C] with C contiguous;
// `column` is a multiple of b's panels; or N is half of a panel and `column` a multiple of N: a product
// that begins within a panel finds its elements, since the swizzle goes by bits of the address. 256 columns
// as two products: where a kernel starts with 128 registers a thread, ptxas refuses the one of 256 (C7602).
template <class T, int N, int K, int C>
KW_DEVICE void wgmma_add_columns(Accumulator<real, 64, N>& acc, const SharedTile<T, 64, K>& a,
                                 const SharedTile<T, K, C>& b, int column) {
  using Left = SharedTile<T, 64, K>;
  using Right = SharedTile<T, K, C>;
  constexpr int kParts = N == 256 ? 2 : 1, kWidth = N / kParts;
  const u64 left = detail::descriptor(a, 16), from = detail::columns_from<N>(b, column);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
#pragma unroll
    for (int p = 0; p < kParts; ++p)
      ptx::Wgmma<T, kWidth>::template ss<1>(
          reinterpret_cast<float(&)[kWidth / 2]>(acc.x[p * (kWidth / 2)]), left + detail::columns_16<Left>(k),
          from + (k * 16 * Right::pitch + p * (kWidth / Right::panel) * Right::panel_bytes >> 4), 1);
  ptx::wgmma_commit();
}
// The same with a in registers.
template <class T, int N, int K, int C>
KW_DEVICE void wgmma_add_columns(Accumulator<real, 64, N>& acc, Operand<T, 64, K>& a, const SharedTile<T, K, C>& b,
                                 int column) {
  using Right = SharedTile<T, K, C>;
  static_assert(N < 256, "one product");
  const u64 from = detail::columns_from<N>(b, column);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<T, N>::template rs<1>(acc.x, a.x[4 * k], a.x[4 * k + 1], a.x[4 * k + 2], a.x[4 * k + 3],
                                     from + (k * 16 * Right::pitch >> 4), 1);
  ptx::wgmma_commit();
}
// acc += a[row ... row + 63] @ b, both in shared memory, a [R, K], b [K, N], N contiguous; `row` is a multiple
// of 64. Warpgroups share out the rows of a tile that one of them would multiply as several.
template <class T, int N, int R, int K>
KW_DEVICE void wgmma_add_rows(Accumulator<real, 64, N>& acc, const SharedTile<T, R, K>& a, int row,
                              const SharedTile<T, K, N>& b) {
  using Left = SharedTile<T, R, K>;
  const u64 left = detail::descriptor(a, 16) + u32(row * Left::pitch >> 4),
            from = detail::descriptor(b, SharedTile<T, K, N>::panel_bytes);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<T, N>::template ss<1>(acc.x, left + detail::columns_16<Left>(k),
                                     from + (k * 16 * SharedTile<T, K, N>::pitch >> 4), 1);
  ptx::wgmma_commit();
}
// acc += a @ b.T, a [64, K] and b [N, K] in shared memory, K contiguous in both.
template <class T, int N, int K>
KW_DEVICE void wgmma_add_transposed(Accumulator<real, 64, N>& acc, const SharedTile<T, 64, K>& a,
                                    Transposed<SharedTile<T, N, K>> b) {
  const u64 left = detail::descriptor(a, 16), from = detail::descriptor(b.tile, 16);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<T, N>::template ss<0>(acc.x, left + detail::columns_16<SharedTile<T, 64, K>>(k),
                                     from + detail::columns_16<SharedTile<T, N, K>>(k), 1);
  ptx::wgmma_commit();
}
// The same with a in registers.
template <class T, int N, int K>
KW_DEVICE void wgmma_add_transposed(Accumulator<real, 64, N>& acc, Operand<T, 64, K>& a,
                                    Transposed<SharedTile<T, N, K>> b) {
  const u64 from = detail::descriptor(b.tile, 16);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<T, N>::template rs<0>(acc.x, a.x[4 * k], a.x[4 * k + 1], a.x[4 * k + 2], a.x[4 * k + 3],
                                     from + detail::columns_16<SharedTile<T, N, K>>(k), 1);
  ptx::wgmma_commit();
}
// All but the latest kPending products have been done, and what they read of shared memory may be written
// again. Their accumulator stays under way: products that follow add to it.
template <int kPending> KW_DEVICE void wgmma_wait_group() { ptx::wgmma_wait<kPending>(); }
// All but the latest kPending products are done; the named tiles may be read.
template <int kPending, class... Tiles> KW_DEVICE void wgmma_wait(Tiles&... tiles) {
  ptx::wgmma_wait<kPending>();
  (detail::pin(tiles), ...);
}

}  // namespace kw
