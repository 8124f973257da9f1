// Copies: global to shared and back by the copy engine (one thread asks, an mbarrier or a wait
// tells), shared to registers and back, row vectors to global memory.
#pragma once
#include "barriers.cuh"
#include "../tile/tensors.cuh"
namespace kw {

// L2 eviction priorities, as createpolicy encodes them.
constexpr u64 evict_first = 0x12F0000000000000ull, evict_last = 0x14F0000000000000ull,
              evict_normal = 0x1000000000000000ull;

// By one thread. Arrives at the barrier once with the tile's bytes announced; the use completes
// when they have come. Rows and columns past the tensor's end are zero.
template <class T, char... Dims, int R, int C>
KW_DEVICE void tma_load(const TensorMap<const T, Dims...>& from, Coords at, SharedTile<T, R, C>& to,
                        BarrierUse full, u64 hint) {
  ptx::mbarrier_arrive_expect(full.address, SharedTile<T, R, C>::bytes);
  ptx::tma_load(to.address(), &from.map, full.address, at.batch, at.head, at.row, hint);
}
// The same of rows that lie in pages of kRows: `at` is a batch entry, a head, and a row of all that the entry has, of which
// row r is row r % kRows of page table(batch, r / kRows). A page that the tensor does not have, and rows beyond the
// table, are zero. The row is a multiple of kRows, or of the tile's rows where a page has more. So many pages are looked
// up at once: more wait for memory less, and take registers.
template <int kRows, int kAtOnce, class T, char... Dims, char... Entries, int R, int C>
KW_DEVICE void tma_load_pages(const TensorMap<const T, Dims...>& from, Coords at, const Tensor<const int, Entries...>& table,
                              SharedTile<T, R, C>& to, BarrierUse full, u64 hint) {
  using Tile = SharedTile<T, R, C>;
  static_assert(sizeof...(Entries) == 2 && kRows % 8 == 0 && (R % kRows == 0 || kRows % R == 0), "whole pages, or parts of one");
  const TensorRow<const int> entries = table.row(at.batch);
  const auto page_of = [&](int row) { return row / kRows < table.extent[1] ? from_memory(entries.at(row / kRows)) : -1; };
  ptx::mbarrier_arrive_expect(full.address, Tile::bytes);
  if constexpr (kRows >= R) {
    ptx::tma_load(to.address(), &from.map, full.address, page_of(at.row), at.head, at.row % kRows, hint);
  } else {  // the rows of a panel of a page lie together in the tile, and those of the next panel do not
    static_assert(R / kRows % kAtOnce == 0, "as many each time");
#pragma unroll 1
    for (int first = 0; first < R / kRows; first += kAtOnce) {
      int page[kAtOnce];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) page[n] = page_of(at.row + (first + n) * kRows);
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n)
#pragma unroll
        for (int p = 0; p < Tile::panels; ++p)
          ptx::tma_load_panel(to.address() + p * Tile::panel_bytes + (first + n) * kRows * Tile::pitch, &from.map,
                              full.address, page[n], at.head, 0, p, hint);
    }
  }
}
// The same of a tile that is part of wider rows: 64 columns at a time, from a multiple of 8 on. Rows and
// columns past the tensor's end are zero, and their bytes count too.
template <class T, char... Dims, int R, int C>
KW_DEVICE void tma_load_tile(const TensorMap<const T, Dims...>& from, TileCoords at, SharedTile<T, R, C>& to,
                             BarrierUse full, u64 hint) {
  using Tile = SharedTile<T, R, C>;
  static_assert(Tile::panel == 64, "whole panels of 64 columns");
  ptx::mbarrier_arrive_expect(full.address, Tile::bytes);
#pragma unroll
  for (int p = 0; p < Tile::panels; ++p)
    ptx::tma_load_columns(to.address() + p * Tile::panel_bytes, &from.map, full.address, at.batch, at.head, at.row,
                          at.column + p * 64, hint);
}
// By one thread of every CTA of a cluster, with the same coordinates: each fetches its part (of the
// panels, or where they can't be shared out evenly, of the rows) and sends it to all, so the tile is
// read from L2 once for all of them. Each CTA's own barrier waits for the whole tile. The slot must
// be free in every CTA.
template <int kCtas, class T, char... Dims, int R, int C>
KW_DEVICE void tma_load_multicast(const TensorMap<const T, Dims...>& from, Coords at, SharedTile<T, R, C>& to,
                                  BarrierUse full, u64 hint) {
  using Tile = SharedTile<T, R, C>;
  if constexpr (kCtas == 1) return tma_load(from, at, to, full, hint);
  constexpr bool by_panels = Tile::panels % kCtas == 0;
  constexpr int rows = by_panels ? R : R / kCtas, copies = by_panels ? 1 : Tile::panels;
  static_assert(by_panels || R % (8 * kCtas) == 0, "parts of equal size");
  const u32 part = ptx::cta_rank();
  const int first = by_panels ? part * (Tile::panels / kCtas) : 0, row = by_panels ? 0 : part * rows;
  ptx::mbarrier_arrive_expect(full.address, Tile::bytes);
#pragma unroll
  for (int p = 0; p < copies; ++p)
    ptx::tma_load_multicast(to.address() + (first + p) * Tile::panel_bytes + row * Tile::pitch, &from.map,
                            full.address, at.batch, at.head, at.row + row, first + p, hint,
                            (1 << kCtas) - 1);
}
// The same of R values of consecutive rows, one value a row, which are all inside of the tensor; rows of it
// follow each other, and R values are a multiple of 16 bytes.
template <char... Dims, int R>
KW_DEVICE void tma_load_rows(const Tensor<scratch<float>, Dims...>& from, Coords at, SharedRows<real, R>& to,
                             BarrierUse full) {
  static_assert(sizeof...(Dims) == 3 && sizeof(real) == 4, "one float a row");
  ptx::mbarrier_arrive_expect(full.address, R * 4);
  ptx::bulk_load(ptx::shared_address(to.x), from.row_to_write(at.batch, at.head, 0) + at.row, R * 4, full.address);
}
// By one thread of each CTA of a cluster of two, after fence_async() by the writers and a wait: the tile to
// the same place in the other CTA, whose barrier waits for it. The slot must be free there, and may be
// written again here when the other CTA has had it.
template <class T, int R, int C>
KW_DEVICE void tma_send(const SharedTile<T, R, C>& from, const SharedTile<T, R, C>& to, BarrierUse full) {
  const u32 other = ptx::cta_rank() ^ 1, bar = ptx::shared_address_in(full.address, other);
  ptx::mbarrier_arrive_expect_there(bar, SharedTile<T, R, C>::bytes);
  ptx::bulk_send(ptx::shared_address_in(to.address(), other), from.address(), SharedTile<T, R, C>::bytes, bar);
}
// By one thread, after fence_async() by the writers and a sync: as many of the tile's columns as the tensor
// has. Rows past the end are not written.
template <class T, char... Dims, int R, int C>
KW_DEVICE void tma_store(const SharedTile<T, R, C>& from, const TensorMap<T, Dims...>& to, Coords at) {
  ptx::tma_store(&to.map, from.address(), at.batch, at.head, at.row);
  ptx::tma_store_commit();
}
// The same to a scratch that a pass behind the kernel reads.
template <class T, char... Dims, int R, int C>
KW_DEVICE void tma_store(const SharedTile<T, R, C>& from, const TensorMap<scratch<T>, Dims...>& to, Coords at) {
  ptx::tma_store(&to.map, from.address(), at.batch, at.head, at.row);
  ptx::tma_store_commit();
}
// The same to a tensor whose rows are wider. Rows and columns past the end are not written.
template <class T, char... Dims, int R, int C>
KW_DEVICE void tma_store_tile(const SharedTile<T, R, C>& from, const TensorMap<T, Dims...>& to, TileCoords at) {
  using Tile = SharedTile<T, R, C>;
  static_assert(Tile::panel == 64, "whole panels of 64 columns");
#pragma unroll
  for (int p = 0; p < Tile::panels; ++p)
    ptx::tma_store_columns(&to.map, from.address() + p * Tile::panel_bytes, at.batch, at.head, at.row,
                           at.column + p * 64);
  ptx::tma_store_commit();
}
// By the thread that stored: shared memory may be written again / global memory is written.
KW_DEVICE void tma_store_wait_read() { ptx::tma_store_wait_read(); }
KW_DEVICE void tma_store_wait() { ptx::tma_store_wait(); }
// Shared stores of this warp before it are seen by the copy engine after the next sync or arrival.
KW_DEVICE void fence_async() {
  ptx::fence_async_proxy();
  __syncwarp();
}

template <class T, int R, int C> KW_DEVICE void load(const SharedTile<T, R, C>& from, Operand<T, R, C>& to) {
  const u32 lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
  for (int n = 0; n < to.count; n += 4)
    ptx::ldmatrix_x4(from.chunk(row + n / (C / 4) * 64, n % (C / 4) / 2 + lane / 16), to.x[n], to.x[n + 1],
                     to.x[n + 2], to.x[n + 3]);
}
namespace detail {
// A warp's 16 rows and columns, as it holds them in an accumulator, to a tile's `row` and `chunk`:
// word by word, and with the one instruction that Hopper has for it.
template <class Tile>
KW_DEVICE void store_words(Tile& to, int row, int chunk, u32 a, u32 b, u32 c, u32 d) {
  const u32 lane = ptx::thread_anew() % 32;
  const u32 left = to.chunk(row + lane / 4, chunk) + lane % 4 * 4;
  const u32 right = to.chunk(row + lane / 4, chunk + 1) + lane % 4 * 4;
  ptx::store_shared(left, a);
  ptx::store_shared(left + 8 * 128, b);
  ptx::store_shared(right, c);
  ptx::store_shared(right + 8 * 128, d);
}
template <class Tile>
KW_DEVICE void store_16x16(Tile& to, int row, int chunk, u32 a, u32 b, u32 c, u32 d) {
#if __CUDA_ARCH__ >= 900
  const u32 lane = ptx::thread_anew() % 32;
  ptx::stmatrix_x4(to.chunk(row + lane % 16, chunk + lane / 16), a, b, c, d);
#else
  store_words(to, row, chunk, a, b, c, d);
#endif
}
// The same of these 16 x 16 transposed. Before Hopper each 8 x 8 is transposed in registers.
template <class Tile>
KW_DEVICE void store_words_transposed(Tile& to, int row, int chunk, u32 a, u32 b, u32 c, u32 d) {
  store_words(to, row, chunk, ptx::transposed(a), ptx::transposed(c), ptx::transposed(b), ptx::transposed(d));
}
template <class Tile>
KW_DEVICE void store_16x16_transposed(Tile& to, int row, int chunk, u32 a, u32 b, u32 c, u32 d) {
#if __CUDA_ARCH__ >= 900
  const u32 lane = ptx::thread_anew() % 32;
  ptx::stmatrix_x4_transposed(to.chunk(row + lane % 8 + lane / 16 * 8, chunk + lane / 8 % 2), a, b, c, d);
#else
  store_words_transposed(to, row, chunk, a, b, c, d);
#endif
}
}  // namespace detail
// Rounds to the tile's type, to nearest even. The tile may have more columns: the others stay.
template <class T, int R, int C, int kWide>
KW_DEVICE void store(const Accumulator<real, R, C>& from, SharedTile<T, R, kWide>& to) {
  static_assert(C <= kWide && C % SharedTile<T, R, kWide>::panel == 0, "whole panels of the tile");
  const u32 row = ptx::thread_anew() % 128 / 32 * 16;
#pragma unroll
  for (int n = 0; n < from.count; n += 8)
    detail::store_16x16(to, row + n / (C / 2) * 64, n % (C / 2) / 4,
                     ptx::pack(T{}, from.x[n], from.x[n + 1]), ptx::pack(T{}, from.x[n + 2], from.x[n + 3]),
                     ptx::pack(T{}, from.x[n + 4], from.x[n + 5]),
                     ptx::pack(T{}, from.x[n + 6], from.x[n + 7]));
}
// The same to columns `column` ..., a multiple of the panels' width: the other columns stay.
template <class T, int R, int C, int kWide>
KW_DEVICE void store_columns(const Accumulator<real, R, C>& from, SharedTile<T, R, kWide>& to, int column) {
  static_assert(C <= kWide && C % SharedTile<T, R, kWide>::panel == 0, "whole panels of the tile");
  const u32 row = ptx::thread_anew() % 128 / 32 * 16;
#pragma unroll
  for (int n = 0; n < from.count; n += 8)
    detail::store_16x16(to, row + n / (C / 2) * 64, column / 8 + n % (C / 2) / 4,
                     ptx::pack(T{}, from.x[n], from.x[n + 1]), ptx::pack(T{}, from.x[n + 2], from.x[n + 3]),
                     ptx::pack(T{}, from.x[n + 4], from.x[n + 5]),
                     ptx::pack(T{}, from.x[n + 6], from.x[n + 7]));
}
// The same of the accumulator transposed: its columns are the tile's rows.
template <class T, int C>
KW_DEVICE void store_transposed(const Accumulator<real, 64, C>& from, SharedTile<T, C, 64>& to) {
  const u32 chunk = ptx::thread_anew() % 128 / 32 * 2;
#pragma unroll
  for (int n = 0; n < from.count; n += 8)
    detail::store_16x16_transposed(to, n / 8 * 16, chunk, ptx::pack(T{}, from.x[n], from.x[n + 1]),
                                   ptx::pack(T{}, from.x[n + 2], from.x[n + 3]), ptx::pack(T{}, from.x[n + 4], from.x[n + 5]),
                                   ptx::pack(T{}, from.x[n + 6], from.x[n + 7]));
}
// A warp's rows of a vector to shared memory, for whoever has waited for its next arrival; and from
// there, after which a next arrival gives the place back.
template <int R> KW_DEVICE void put_rows(const RowVector<real, R>& from, SharedRows<real, R>& to) {
  const int row = Accumulator<real, 64, 8>::thread_row();
  if (threadIdx.x % 4 == 0) {
#pragma unroll
    for (int r = 0; r < R / 32; ++r) to.x[row + r / 2 * 64 + r % 2 * 8] = from.x[r];
  }
  __syncwarp();
}
template <int R> KW_DEVICE void get_rows(const SharedRows<real, R>& from, RowVector<real, R>& to) {
  const int row = Accumulator<real, 64, 8>::thread_row();
#pragma unroll
  for (int r = 0; r < R / 32; ++r) to.x[r] = from.x[row + r / 2 * 64 + r % 2 * 8];
  __syncwarp();
}
// Every row of the tile becomes the vector, one value a column: what a product is then added to.
template <int C> KW_DEVICE void fill_columns(Accumulator<real, 64, C>& t, const SharedRows<real, C>& v) {
#pragma unroll
  for (int n = 0; n < t.count; n += 4) {
    const float2 c = *reinterpret_cast<const float2*>(v.x + t.thread_column() + t.column(n));
    t.x[n] = c.x, t.x[n + 1] = c.y, t.x[n + 2] = c.x, t.x[n + 3] = c.y;
  }
}
// The vector is added to every row of the tile.
template <int C> KW_DEVICE void add_columns(Accumulator<real, 64, C>& t, const SharedRows<real, C>& v) {
#pragma unroll
  for (int n = 0; n < t.count; n += 4) {
    const float2 c = *reinterpret_cast<const float2*>(v.x + t.thread_column() + t.column(n));
    t.x[n] += c.x, t.x[n + 1] += c.y, t.x[n + 2] += c.x, t.x[n + 3] += c.y;
  }
}
// Every row of the tile is multiplied by the vector.
template <int C> KW_DEVICE void scale_columns(Accumulator<real, 64, C>& t, const SharedRows<real, C>& v) {
#pragma unroll
  for (int n = 0; n < t.count; n += 4) {
    const float2 c = *reinterpret_cast<const float2*>(v.x + t.thread_column() + t.column(n));
    t.x[n] *= c.x, t.x[n + 1] *= c.y, t.x[n + 2] *= c.x, t.x[n + 3] *= c.y;
  }
}
namespace detail {
// A scratch that this kernel writes for one behind it.
template <char... Dims> KW_DEVICE Tensor<float, Dims...> to_write(const Tensor<scratch<float>, Dims...>& t) {
  Tensor<float, Dims...> out;
  out.data = const_cast<float*>(t.data);
#pragma unroll
  for (int d = 0; d < int(sizeof...(Dims)); ++d) out.stride[d] = t.stride[d], out.extent[d] = t.extent[d];
  return out;
}
}  // namespace detail
// One value a row; rows past the end are dropped.
template <int R, char... Dims>
KW_DEVICE void store_rows(const RowVector<real, R>& from, const Tensor<float, Dims...>& to, Coords at) {
  const int row = at.row + Accumulator<real, 64, 8>::thread_row(), rows = to.extent[2];
  if (threadIdx.x % 4 == 0) {
#pragma unroll
    for (int r = 0; r < R / 32; ++r) {
      const int i = row + r / 2 * 64 + r % 2 * 8;
      if (i < rows) to.element(at.batch, at.head, i) = to_memory(from.x[r]);
    }
  }
}
template <int R, char... Dims>
KW_DEVICE void store_rows(const RowVector<real, R>& from, const Tensor<scratch<float>, Dims...>& to, Coords at) {
  store_rows(from, detail::to_write(to), at);
}

// A tile as it is, in floats; rows past the end are dropped. Four lanes write 32 bytes of a row.
template <int R, int C, char... Dims>
KW_DEVICE void store_accumulator(const Accumulator<real, R, C>& from, const Tensor<float, Dims...>& to, Coords at) {
#pragma unroll
  for (int r = 0; r < R / 32; ++r) {
    const int i = at.row + from.thread_row() + r / 2 * 64 + r % 2 * 8;
    if (i >= to.extent[2]) continue;
    float* const row = &to.element(at.batch, at.head, i, from.thread_column());
#pragma unroll
    for (int n = 0; n < C / 4; n += 2) {
      const int k = from.in_row(r, n);
      *reinterpret_cast<float2*>(row + from.column(k)) = make_float2(to_memory(from.x[k]), to_memory(from.x[k + 1]));
    }
  }
}
template <int R, int C, char... Dims>
KW_DEVICE void store_accumulator(const Accumulator<real, R, C>& from, const Tensor<scratch<float>, Dims...>& to, Coords at) {
  store_accumulator(from, detail::to_write(to), at);
}

}  // namespace kw
