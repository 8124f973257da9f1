// Sums of tiles over CTAs: each adds what it has of a tile to a scratch of floats, by the copy engine, and a
// pass behind the kernel rounds the sums to the tensor that they are.
//
//   kw::store(dq, shared.dq_s[me]);  kw::fence_async();              a warpgroup
//   kw::tma_add(shared.dq_s[r], args.dq_sum, {b, h, row, column});   one thread, later
//   kw::round_sums(args.dq_sum, args.scale, w, args.dq);             the threads of the pass
//
//   kw::add_tile(dq_r, args.dq_sum, {b, h, row, column});            a warpgroup: its tile of floats, from registers
//
//   kw::tma_add(shared.ds_s[r][t], args.pairs, {b, h, row, column}); one thread: a tile of elements, as it is
//   kw::sum_tiles(args.pairs, 1.0f, w, args.d_bias);                 the threads of the pass
//
// A pre-pass has written zeros. The scratch is [B, H, rows, columns], rows a multiple of the tile's 64; where
// in it a tile's elements lie is known here alone: 64 rows follow each other, each as a warpgroup
// holds them in registers (SharedTile<float>), so that nothing is rearranged on the way: eight columns after
// eight columns, so that a tile of some columns is part of them. Of eight columns a thread's four elements follow each
// other, which Hopper adds at once; where they are added one by one, the first of all threads come first, so that a warp's
// additions are to 128 bytes. In which order CTAs add is left to the device, so that the last bits of a sum may differ from run to run, but where they
// take turns (turns.cuh).
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
constexpr int kSide = 64;  // rows of a tile in the scratch, and columns of one of elements
// Where in the scratch a tile begins: column `column` of 64 rows of a head, behind those before it.
template <class T, char... Dims> KW_DEVICE T* sums_at(const Tensor<scratch<T>, Dims...>& t, TileCoords at) {
  const i64 rows = i64(at.batch * t.extent[1] + at.head) * (t.extent[2] / kSide) + at.row / kSide;
  return t.row_to_write(0, 0, 0) + (rows * t.extent[3] + at.column) * kSide;
}
// Whether a thread adds its elements one by one, and where of eight columns its element n lies.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr bool kOneByOne = true;
#else
constexpr bool kOneByOne = false;
#endif
template <bool kApart> KW_DEVICE u32 place_of(u32 thread, u32 n) { return kApart ? n * 128 + thread : thread * 4 + n; }
// A thread's four of eight columns, the first of them at `to`.
template <bool kApart> KW_DEVICE void add_four(float* to, real a, real b, real c, real d) {
#ifndef KW_EXACT  // where nobody else adds to them: rational numbers have no instruction of their own
  if constexpr (!kApart) return ptx::add_four(to, a, b, c, d);
#endif
  const real x[4] = {a, b, c, d};
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    float* const at = to + place_of<kApart>(0, n);
#ifdef KW_EXACT
    *at = to_memory(__builtin_bit_cast(real, *at) + x[n]);
#else
    ptx::add_if(true, at, x[n]);
#endif
  }
}
}  // namespace detail

// By one thread, after fence_async() by the writers and an arrival: adds the tile to the sums. tma_store_wait_read
// and tma_store_wait say when the tile may be written again, and when all has been added. A tile of elements is
// added as it is, with its swizzle: of each one is added, to zeros, and nothing is rounded.
template <class T, int C, char... Dims>
KW_DEVICE void tma_add(const SharedTile<T, 64, C>& from, const Tensor<scratch<T>, Dims...>& to, TileCoords at) {
  static_assert(sizeof(T) == 4 || C == detail::kSide, "floats, or a tile of the scratch");
  ptx::bulk_add(detail::sums_at(to, at), from.address(), from.bytes);
  ptx::tma_store_commit();
}

// By a warpgroup, from registers: a thread's elements go where the sums have a thread's. Behind an arrival of each of
// its warps, and who waits for these, a store_release says that all has been added.
template <bool kApart = detail::kOneByOne, int C, char... Dims>
KW_DEVICE void add_tile(const Accumulator<real, 64, C>& from, const Tensor<scratch<float>, Dims...>& to, TileCoords at) {
  static_assert(C % 8 == 0, "whole groups of columns of the sums");
  float* const out = detail::sums_at(to, at) + detail::place_of<kApart>(ptx::thread_anew() % 128, 0);
#pragma unroll
  for (int n = 0; n < C / 8; ++n)
    detail::add_four<kApart>(out + n * 512, from.x[4 * n], from.x[4 * n + 1], from.x[4 * n + 2], from.x[4 * n + 3]);
  __syncwarp();  // an arrival behind it, by one lane, tells of all lanes' (turns.cuh)
}

// By a thread: its share of the tensor, each element the sum times `factor`. A thread has eight columns of two
// rows, which its four neighbours' registers held, and eight threads a row of a tile.
template <bool kApart = detail::kOneByOne, class T, char... From, char... To>
KW_DEVICE void round_sums(const Tensor<scratch<float>, From...>& from, real factor, Thread w, const Tensor<T, To...>& to) {
  const int groups = from.extent[3] / 8, rows = from.extent[2] / detail::kSide;  // groups of eight columns
  const i64 all = i64(to.extent[0]) * to.extent[1] * rows * groups * 32;
  for (i64 y = w.index; y < all; y += w.count) {
    const u32 x = u32(y);  // of sixteen sums each, which fit 32 bits wherever they fit a GPU's memory
    const int n = x % groups, pair = x / groups % 32, block = x / groups / 32;  // rows pair / 8 * 16 + pair % 8 and 8 more
    const int column = n * 8, m = block % rows, head = block / rows;
    const int row = m * 64 + pair / 8 * 16 + pair % 8;
    const int thread = pair / 8 * 32 + pair % 8 * 4;  // the first of the four
    const float4* const v = reinterpret_cast<const float4*>(from.row_to_write(0, 0, 0)) +
                            (i64(block) * groups + n) * 128 + (kApart ? thread / 4 : thread);
    float4 found[4];  // of each neighbour, or each one's first, second ...; by L1, since a thread takes half of a sector at a time
#pragma unroll
    for (int k = 0; k < 4; ++k) found[k] = __ldca(v + (kApart ? k * 32 : k));
    if constexpr (kApart) {
      const float4 a = found[0], b = found[1], c = found[2], d = found[3];
      found[0] = {a.x, b.x, c.x, d.x}, found[1] = {a.y, b.y, c.y, d.y};
      found[2] = {a.z, b.z, c.z, d.z}, found[3] = {a.w, b.w, c.w, d.w};
    }
    ptx::Words16 above, below;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float4 f = found[k];
      above.x[k] = ptx::pack(element_of<T>{}, f.x * factor, f.y * factor);
      below.x[k] = ptx::pack(element_of<T>{}, f.z * factor, f.w * factor);
    }
    auto* const out = detail::row_to_write(to, {head / to.extent[1], head % to.extent[1], row}) + column;
    if (row < to.extent[2]) *reinterpret_cast<ptx::Words16*>(out) = above;
    if (row + 8 < to.extent[2]) *reinterpret_cast<ptx::Words16*>(out + 8 * to.stride[2]) = below;
  }
}

namespace detail {
// Columns 8 * chunk ... of a row of a tile of elements in the scratch, swizzled as in shared memory.
template <class T> KW_DEVICE void add_chunk(const T* tile, int row, int chunk, real (&sum)[8]) {
  const uint4 words = __ldcg(reinterpret_cast<const uint4*>(tile) + row * 8 + (chunk ^ row % 8));
  const u32 x[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int k = 0; k < 8; ++k) sum[k] += from_word(T{}, x[k / 2], k % 2);
}
// Eight elements of a row, of which the first `count` are there; 16 bytes at a time where they may be.
KW_DEVICE void write_chunk(float* to, i64 apart, bool at_once, int count, const real (&x)[8]) {
  if (at_once) {
    reinterpret_cast<float4*>(to)[0] = make_float4(x[0], x[1], x[2], x[3]);
    reinterpret_cast<float4*>(to)[1] = make_float4(x[4], x[5], x[6], x[7]);
    return;
  }
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (k < count) to[k * apart] = x[k];
}
template <class T> KW_DEVICE void write_chunk(T* to, i64 apart, bool at_once, int count, const real (&x)[8]) {
  ptx::Words16 y;
#pragma unroll
  for (int k = 0; k < 4; ++k) y.x[k] = ptx::pack(T{}, x[2 * k], x[2 * k + 1]);
  if (at_once) {
    *reinterpret_cast<ptx::Words16*>(to) = y;
    return;
  }
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (k < count) to[k * apart] = T{static_cast<unsigned short>(y.x[k / 2] >> 16 * (k % 2))};
}
}  // namespace detail

// By a thread: its share of the tensor, [..., rows, columns], each element `factor` times the sum of the scratch
// over those of batch entries and heads that the tensor lacks, in their order. A thread has eight columns of a row,
// and neighbours have the next. The scratch is [B, H, T, W]: blocks of 64 rows and W columns, as many as the tensor
// has, row of blocks by row of blocks.
template <class T, char B, char H, char Rows, char Wide, class Out, char... To>
KW_DEVICE void sum_tiles(const Tensor<scratch<T>, B, H, Rows, Wide>& from, real factor, Thread w, const Tensor<Out, To...>& to) {
  constexpr int rank = sizeof...(To), outer = rank - 2;
  static_assert(outer >= 0, "rows and columns");
  constexpr char dims[rank] = {To...};
  constexpr bool of_batch = outer > 0 && dims[0] == B, of_head = outer > 0 && dims[outer - 1] == H;
  static_assert(int(of_batch) + int(of_head) == outer, "the other dimensions are the scratch's");
  const int rows = to.extent[outer], columns = to.extent[outer + 1], wide = from.extent[3],
            blocks = from.extent[2] / detail::kSide / ceil_div(rows, detail::kSide);  // side by side
  const int chunks = ceil_div(columns, 8), batches = of_batch ? from.extent[0] : 1, heads = of_head ? from.extent[1] : 1;
  const i64 apart = to.stride[outer + 1];
  // Of eight elements each, which fit 32 bits wherever both tensors fit a GPU's memory.
  const u32 all = u32(batches) * heads * rows * chunks;
  for (i64 y = w.index; y < all; y += w.count) {
    const u32 x = u32(y);
    const int chunk = int(x % u32(chunks)), line = int(x / u32(chunks)), row = line % rows, head = line / rows, j = chunk * 8;
    const int tile_row = (row / detail::kSide * blocks + j / wide) * detail::kSide, tile_column = j % wide / detail::kSide * detail::kSide;
    const int b0 = of_batch ? head / heads : 0, b1 = of_batch ? b0 + 1 : from.extent[0];
    const int h0 = of_head ? head % heads : 0, h1 = of_head ? h0 + 1 : from.extent[1];
    real sum[8] = {};
    for (int b = b0; b < b1; ++b)
      for (int h = h0; h < h1; ++h)
        detail::add_chunk(detail::sums_at(from, {b, h, tile_row, tile_column}), row % detail::kSide, chunk % 8, sum);
#pragma unroll
    for (int k = 0; k < 8; ++k) sum[k] *= factor;
    i64 place = row * to.stride[outer] + j * apart;
    if constexpr (of_batch) place += b0 * to.stride[0];
    if constexpr (of_head) place += h0 * to.stride[outer - 1];
    Out* const out = to.data + place;
    const bool at_once = apart == 1 && columns - j >= 8 && reinterpret_cast<u64>(out) % 16 == 0;
    detail::write_chunk(out, apart, at_once, columns - j, sum);
  }
}

}  // namespace kw
