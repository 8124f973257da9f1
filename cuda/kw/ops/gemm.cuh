// Products: 64 rows a worker, asynchronous until a wait_group names the accumulator.
#pragma once
#include "../ptx/wgmma.cuh"
#include "../tile/tiles.cuh"
namespace kw {

namespace detail {
// PTX ISA 9.7.15.5.1.2, matrix descriptor: address, leading and stride offsets in 16 bytes, 128-byte
// swizzle. The stride between groups of 8 rows is 1024 bytes.
template <class T, int R, int C> KW_DEVICE u64 descriptor(const SharedTile<T, R, C>& t, u32 leading) {
  return u64((t.address() & 0x3FFFF) >> 4) | u64(leading >> 4) << 16 | u64(1024 >> 4) << 32 |
         u64(1) << 62;
}
// In the compiler's eyes no use of t moves across it.
template <int C> KW_DEVICE void pin(Accumulator<real, 64, C>& t) {
#pragma unroll
  for (int n = 0; n < C / 2; ++n) asm volatile("" : "+f"(t.x[n])::"memory");
}
}  // namespace detail

// acc = a @ b.T, a [64, K] in registers, b [N, K] in shared memory, K contiguous in both.
template <class T, int N, int K>
KW_DEVICE void gemm_async(Accumulator<real, 64, N>& acc, Operand<T, 64, K>& a,
                          Transposed<SharedTile<T, N, K>> b) {
  const u64 from = detail::descriptor(b.tile, 16);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<N>::template rs<0>(acc.x, a.x[4 * k], a.x[4 * k + 1], a.x[4 * k + 2], a.x[4 * k + 3],
                                  from + ((k / 4 * N * 128 + k % 4 * 32) >> 4), k > 0);
  ptx::wgmma_commit();
}
// acc += a @ b, a [64, K] in registers, b [K, N] in shared memory, N contiguous.
template <class T, int N, int K>
KW_DEVICE void gemm_add_async(Accumulator<real, 64, N>& acc, Operand<T, 64, K>& a,
                              const SharedTile<T, K, N>& b) {
  const u64 from = detail::descriptor(b, K * 128);
  detail::pin(acc);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    ptx::Wgmma<N>::template rs<1>(acc.x, a.x[4 * k], a.x[4 * k + 1], a.x[4 * k + 2], a.x[4 * k + 3],
                                  from + ((k * 16 * 128) >> 4), 1);
  ptx::wgmma_commit();
}
// All but the latest kPending products are done; the named tiles may be read.
template <int kPending, class... Tiles> KW_DEVICE void wait_group(Tiles&... tiles) {
  ptx::wgmma_wait<kPending>();
  (detail::pin(tiles), ...);
}

}  // namespace kw
