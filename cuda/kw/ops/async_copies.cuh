// Copies by all threads of whole warpgroups, 16 bytes a thread at a time, of a tile of a tensor with
// strides. Since Ampere they are asked for (cp.async): what was asked for between two commits comes
// together, and a wait names how many of the latest commits may still be under way. Before (sm_75) they
// go through the threads' registers, and are done when the statement is (copy_in).
//
//   kw::cp_async<WARPGROUPS>(args.k, {b, g, n * BN}, shared.k_s[t]);
//   kw::cp_async_commit();
//   kw::cp_async_wait<0>();                this thread's part has come
//   kw::sync_block();                    and everybody's
#pragma once
#include "../ptx/mma.cuh"
#include "../tile/tensors.cuh"
#include "../tile/tiles.cuh"
namespace kw {

namespace detail {
// How kWarpgroups warpgroups share out a tile: eight threads take the 128 bytes of a row of a panel, and a
// thread takes the same place in every panel.
template <int kWarpgroups> struct Share {
  static constexpr int rows = kWarpgroups * 16;  // that all threads take at once
  const u32 thread = ptx::thread_index() % (kWarpgroups * 128);
  const int row = thread / 8, chunk = thread % 8;
};
// The coordinates are not negative; as u32 they need no sign of 64 bits.
template <class T, char... Dims>
KW_DEVICE T* row_of(const Tensor<scratch<T>, Dims...>& t, Coords at, int row) {
  return t.row_to_write(at.batch, at.head, at.row + row);
}
template <class T, char... Dims>
KW_DEVICE T* row_of(const Tensor<T, Dims...>& t, Coords at, int row) {
  return t.data + u32(at.batch) * t.stride[0] + u32(at.head) * t.stride[1] + u32(at.row + row) * t.stride[2];
}
}  // namespace detail

// By all threads of kWarpgroups warpgroups: one warpgroup, or the block. Rows past the tensor's end are zero.
// Rows start at multiples of 16 bytes and are contiguous.
template <int kWarpgroups, class T, char... Dims, int R, int C>
KW_DEVICE void cp_async(const Tensor<const T, Dims...>& from, Coords at, SharedTile<T, R, C>& to) {
  const detail::Share<kWarpgroups> mine;
  const T* src = detail::row_of(from, at, mine.row) + mine.chunk * 8;
  const u32 dst = to.chunk(mine.row, mine.chunk);
#pragma unroll
  for (int r = 0; r < R; r += mine.rows) {
    if (R % mine.rows != 0 && r + mine.row >= R) break;
    const u32 take = at.row + mine.row + r < from.extent[2] ? 16 : 0;
#pragma unroll
    for (int panel = 0; panel < C / 64; ++panel)
      ptx::cp_async_16(dst + r * 128 + panel * (R * 128), src + panel * 64, take);
    src += mine.rows * from.stride[2];
  }
}
// The same of e4m3, 8 bytes a thread at a time: a thread brings what it converts.
template <int kWarpgroups, char... Dims, int R, int C>
KW_DEVICE void cp_async(const Tensor<const e4m3, Dims...>& from, Coords at, SharedTile<e4m3, R, C>& to) {
  using Tile = SharedTile<e4m3, R, C>;
  const detail::Share<kWarpgroups> mine;
  const e4m3* src = detail::row_of(from, at, mine.row) + mine.chunk * 8;
  const u32 dst = to.chunk(mine.row, mine.chunk);
#pragma unroll
  for (int r = 0; r < R; r += mine.rows) {
    if (R % mine.rows != 0 && r + mine.row >= R) break;
    const u32 take = at.row + mine.row + r < from.extent[2] ? 8 : 0;
#pragma unroll
    for (int panel = 0; panel < C / 64; ++panel)
      ptx::cp_async_8(dst + r * Tile::pitch + panel * Tile::panel_bytes, src + panel * 64, take);
    src += mine.rows * from.stride[2];
  }
}
// The same for a tile that is part of wider rows. Rows and columns past the tensor's end are zero; the
// tensor's columns and the tile's first column are multiples of 8.
template <int kWarpgroups, class T, char... Dims, int R, int C>
KW_DEVICE void cp_async_tile(const Tensor<const T, Dims...>& from, TileCoords at, SharedTile<T, R, C>& to) {
  const detail::Share<kWarpgroups> mine;
  const int column = at.column + mine.chunk * 8;
  const T* src = detail::row_of(from, {at.batch, at.head, at.row}, mine.row) + column;
  const u32 dst = to.chunk(mine.row, mine.chunk);
#pragma unroll
  for (int r = 0; r < R; r += mine.rows) {
    if (R % mine.rows != 0 && r + mine.row >= R) break;
    const bool inside = at.row + mine.row + r < from.extent[2];
#pragma unroll
    for (int panel = 0; panel < C / 64; ++panel) {
      const u32 take = inside && column + panel * 64 < from.extent[3] ? 16 : 0;
      ptx::cp_async_16(dst + r * 128 + panel * (R * 128), src + panel * 64, take);
    }
    src += mine.rows * from.stride[2];
  }
}
// R values of consecutive rows, one value a row, which are all inside of the tensor; rows of it follow each
// other, and R values are a multiple of 16 bytes. Threads past the R / 4 that this takes ask for nothing.
template <int kWarpgroups, char... Dims, int R>
KW_DEVICE void cp_async_rows(const Tensor<scratch<float>, Dims...>& from, Coords at, SharedRows<real, R>& to) {
  static_assert(sizeof...(Dims) == 3 && sizeof(real) == 4 && R % 4 == 0 && R / 4 <= kWarpgroups * 128, "one float a row");
  const int place = ptx::thread_index() % (kWarpgroups * 128) * 4;
  if (place < R)
    ptx::cp_async_16(ptx::shared_address(to.x + place), from.row_to_write(at.batch, at.head, 0) + at.row + place, 16);
}
KW_DEVICE void cp_async_commit() { ptx::cp_async_commit(); }
// All but the latest kPending commits of this thread have come; after a sync those of the others too.
template <int kPending> KW_DEVICE void cp_async_wait() { ptx::cp_async_wait<kPending>(); }

#ifndef KW_EXACT
namespace detail {
// Two of e4m3 as elements: exactly, since both 16-bit types have all of its values.
KW_DEVICE u32 widened(f16, u32 two) { return to_f16x2(static_cast<unsigned short>(two)); }
KW_DEVICE u32 widened(bf16, u32 two) {
  const u32 both = to_f16x2(static_cast<unsigned short>(two));
  return ptx::pack(bf16{}, from_word(f16{}, both, 0), from_word(f16{}, both, 1));
}
}  // namespace detail
// By the warpgroups that copied `from`, when each thread's own copies have come: every thread converts
// what it has copied itself. After a sync the others may read.
template <int kWarpgroups, class T, int R, int C>
KW_DEVICE void upcast(const SharedTile<e4m3, R, C>& from, SharedTile<T, R, C>& to) {
  using Tile = SharedTile<e4m3, R, C>;
  const detail::Share<kWarpgroups> mine;
  const u32 src = from.chunk(mine.row, mine.chunk), dst = to.chunk(mine.row, mine.chunk);
#pragma unroll
  for (int r = 0; r < R; r += mine.rows) {
    if (R % mine.rows != 0 && r + mine.row >= R) break;
#pragma unroll
    for (int panel = 0; panel < C / 64; ++panel) {
      const ptx::Words8 v = ptx::load_shared_8(src + r * Tile::pitch + panel * Tile::panel_bytes);
      ptx::Words16 wide;
#pragma unroll
      for (int n = 0; n < 4; ++n) wide.x[n] = detail::widened(T{}, v.x[n / 2] >> n % 2 * 16);
      ptx::store_shared_16(dst + r * 128 + panel * (R * 128), wide);
    }
  }
}
#endif

// By all threads of kWarpgroups warpgroups: one warpgroup, or the block. This thread's part is in shared memory
// when it returns; after a sync those of the others too. Rows past the tensor's end are zero. Rows
// start at multiples of 16 bytes and are contiguous. Loads are asked for kAtOnce at a time, so that
// memory's latency is waited for once for all of them, and no more, for the registers.
template <int kWarpgroups, class T, char... Dims, int R, int C>
KW_DEVICE void copy_in(const Tensor<const T, Dims...>& from, Coords at, SharedTile<T, R, C>& to) {
  static_assert(C % 64 == 0, "whole panels of 64 columns");
  const detail::Share<kWarpgroups> mine;
  const T* src = detail::row_of(from, at, mine.row) + mine.chunk * 8;
  const u32 dst = to.chunk(mine.row, mine.chunk);
  constexpr int panels = C / 64, kAtOnce = 8 / panels > 0 ? 8 / panels : 1;  // rows
#pragma unroll
  for (int first = 0; first < R; first += kAtOnce * mine.rows) {
    ptx::Words16 words[kAtOnce][panels] = {};
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const int row = first + n * mine.rows + mine.row;
#pragma unroll
      for (int panel = 0; panel < panels; ++panel)
        if (row < R && at.row + row < from.extent[2]) words[n][panel] = ptx::load_global_16(src + panel * 64);
      src += mine.rows * from.stride[2];
    }
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n)
#pragma unroll
      for (int panel = 0; panel < panels; ++panel)
        if (first + n * mine.rows + mine.row < R)
          ptx::store_shared_16(dst + (first + n * mine.rows) * 128 + panel * (R * 128), words[n][panel]);
  }
}

// The same for a tile that is part of wider rows, as cp_async_tile.
template <int kWarpgroups, class T, char... Dims, int R, int C>
KW_DEVICE void copy_tile_in(const Tensor<const T, Dims...>& from, TileCoords at, SharedTile<T, R, C>& to) {
  const detail::Share<kWarpgroups> mine;
  const int column = at.column + mine.chunk * 8;
  const T* src = detail::row_of(from, {at.batch, at.head, at.row}, mine.row) + column;
  const u32 dst = to.chunk(mine.row, mine.chunk);
  constexpr int panels = C / 64, kAtOnce = 8 / panels > 0 ? 8 / panels : 1;  // rows
#pragma unroll
  for (int first = 0; first < R; first += kAtOnce * mine.rows) {
    ptx::Words16 words[kAtOnce][panels] = {};
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const int row = first + n * mine.rows + mine.row;
      const bool inside = row < R && at.row + row < from.extent[2];
#pragma unroll
      for (int panel = 0; panel < panels; ++panel)
        if (inside && column + panel * 64 < from.extent[3]) words[n][panel] = ptx::load_global_16(src + panel * 64);
      src += mine.rows * from.stride[2];
    }
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n)
#pragma unroll
      for (int panel = 0; panel < panels; ++panel)
        if (first + n * mine.rows + mine.row < R)
          ptx::store_shared_16(dst + (first + n * mine.rows) * 128 + panel * (R * 128), words[n][panel]);
  }
}

// By all threads of kWarpgroups warpgroups, after a sync with who wrote the tile: to global memory, 16 bytes
// a thread at a time. Rows past the end are not written.
template <int kWarpgroups, class T, class To, char... Dims, int R, int C>
KW_DEVICE void copy_out(const SharedTile<T, R, C>& from, const Tensor<To, Dims...>& to, Coords at) {
  const detail::Share<kWarpgroups> mine;
  T* dst = detail::row_of(to, at, mine.row) + mine.chunk * 8;
  const u32 src = from.chunk(mine.row, mine.chunk);
#pragma unroll
  for (int r = 0; r < R; r += mine.rows) {
#pragma unroll
    for (int panel = 0; panel < C / 64; ++panel)
      if (at.row + mine.row + r < to.extent[2] && (R % mine.rows == 0 || r + mine.row < R))
        *reinterpret_cast<ptx::Words16*>(dst + panel * 64) = ptx::load_shared_16(src + r * 128 + panel * (R * 128));
    dst += mine.rows * to.stride[2];
  }
}
// The same for a tile that is part of wider rows, as cp_async_tile.
template <int kWarpgroups, class T, char... Dims, int R, int C>
KW_DEVICE void copy_tile_out(const SharedTile<T, R, C>& from, const Tensor<T, Dims...>& to, TileCoords at) {
  const detail::Share<kWarpgroups> mine;
  const int column = at.column + mine.chunk * 8;
  T* dst = detail::row_of(to, {at.batch, at.head, at.row}, mine.row) + column;
  const u32 src = from.chunk(mine.row, mine.chunk);
#pragma unroll
  for (int r = 0; r < R; r += mine.rows) {
#pragma unroll
    for (int panel = 0; panel < C / 64; ++panel)
      if (at.row + mine.row + r < to.extent[2] && (R % mine.rows == 0 || r + mine.row < R) &&
          column + panel * 64 < to.extent[3])
        *reinterpret_cast<ptx::Words16*>(dst + panel * 64) = ptx::load_shared_16(src + r * 128 + panel * (R * 128));
    dst += mine.rows * to.stride[2];
  }
}

}  // namespace kw
