// Sums of tiles over CTAs: each adds what it has of a tile to a scratch of floats, by the copy engine, and a
// pass behind the kernel rounds the sums to the tensor that they are.
//
//   kw::store(dq, shared.dq_s[me]);  kw::fence_async();              a warpgroup
//   kw::tma_add(shared.dq_s[r], args.dq_sum, {b, h, row, column});   one thread, later
//   kw::round_sums(args.dq_sum, args.scale, w, args.dq);             the threads of the pass
//
// A pre-pass has written zeros. The scratch is [B, H, rows, columns], rows a multiple of the tile's 64; where
// in it a tile's elements lie is known here alone: tiles of 64 x 64 follow each other, each as a warpgroup
// holds it in registers (SharedTile<float>), so that nothing is rearranged on the way. In which order CTAs
// add is left to the device: the last bits of a sum may differ from run to run.
#pragma once
#include "../tile/tensors.cuh"
#include "../tile/tiles.cuh"
#include "parts.cuh"
#include "row_maps.cuh"
namespace kw {

// The accumulator as it is.
template <int C> KW_DEVICE void store(const Accumulator<real, 64, C>& from, SharedTile<float, 64, C>& to) {
  float4* const x = reinterpret_cast<float4*>(to.data) + threadIdx.x % 128;
#pragma unroll
  for (int n = 0; n < C / 8; ++n)
    x[n * 128] = make_float4(to_memory(from.x[4 * n]), to_memory(from.x[4 * n + 1]), to_memory(from.x[4 * n + 2]),
                             to_memory(from.x[4 * n + 3]));
}

namespace detail {
constexpr int kSide = 64;  // of a tile in the scratch
// Tile [row / 64, column / 64] of a head.
template <char... Dims> KW_DEVICE float* sums_at(const Tensor<scratch<float>, Dims...>& t, TileCoords at) {
  const i64 tiles = i64(at.batch * t.extent[1] + at.head) * (t.extent[2] / kSide) + at.row / kSide;
  return t.row_to_write(0, 0, 0) + (tiles * (t.extent[3] / kSide) + at.column / kSide) * (kSide * kSide);
}
}  // namespace detail

// By one thread, after fence_async() by the writers and an arrival: adds the tile to the sums. tma_store_wait_read
// and tma_store_wait say when the tile may be written again, and when all has been added.
template <char... Dims>
KW_DEVICE void tma_add(const SharedTile<float, 64, 64>& from, const Tensor<scratch<float>, Dims...>& to, TileCoords at) {
  ptx::bulk_add(detail::sums_at(to, at), from.address(), from.bytes);
  ptx::tma_store_commit();
}

// By a thread: its share of the tensor, each element the sum times `factor`. A thread has eight columns of two
// rows, which its four neighbours' registers held, and eight threads a row of a tile.
template <class T, char... From, char... To>
KW_DEVICE void round_sums(const Tensor<scratch<float>, From...>& from, real factor, Thread w, const Tensor<T, To...>& to) {
  const int columns = from.extent[3] / detail::kSide, rows = from.extent[2] / detail::kSide;
  const int all = to.extent[0] * to.extent[1] * rows * columns * (32 * 8);
  for (int x = w.index; x < all; x += w.count) {
    const int n = x % 8, pair = x / 8 % 32, tile = x / 256;  // columns 8n ...; rows pair / 8 * 16 + pair % 8 and 8 more
    const int column = tile % columns * 64 + n * 8, m = tile / columns % rows, head = tile / columns / rows;
    const int row = m * 64 + pair / 8 * 16 + pair % 8;
    const float4* const v = reinterpret_cast<const float4*>(from.row_to_write(0, 0, 0)) + i64(tile) * 1024 + n * 128 +
                            pair / 8 * 32 + pair % 8 * 4;
    ptx::Words16 above, below;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float4 f = __ldcg(v + k);
      above.x[k] = ptx::pack(element_of<T>{}, f.x * factor, f.y * factor);
      below.x[k] = ptx::pack(element_of<T>{}, f.z * factor, f.w * factor);
    }
    auto* const out = detail::row_to_write(to, {head / to.extent[1], head % to.extent[1], row}) + column;
    if (row < to.extent[2]) *reinterpret_cast<ptx::Words16*>(out) = above;
    if (row + 8 < to.extent[2]) *reinterpret_cast<ptx::Words16*>(out + 8 * to.stride[2]) = below;
  }
}

}  // namespace kw
