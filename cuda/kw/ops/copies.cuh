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
KW_DEVICE void load_async(const TensorMap<const T, Dims...>& from, Coords at, SharedTile<T, R, C>& to,
                          BarrierUse full, u64 hint) {
  ptx::mbarrier_arrive_expect(full.address, SharedTile<T, R, C>::bytes);
  ptx::tma_load(to.address(), &from.map, full.address, at.batch, at.head, at.row, hint);
}
// By one thread of every CTA of a cluster, with the same coordinates: each fetches its part of the
// columns and sends it to all, so the tile is read from L2 once for all of them. Each CTA's own
// barrier waits for the whole tile. The slot must be free in every CTA.
template <int kCtas, class T, char... Dims, int R, int C>
KW_DEVICE void multicast_async(const TensorMap<const T, Dims...>& from, Coords at, SharedTile<T, R, C>& to,
                               BarrierUse full, u64 hint) {
  constexpr int panels = C / 64, bytes = SharedTile<T, R, C>::bytes;
  constexpr int rows = kCtas > panels ? R * panels / kCtas : R, wide = kCtas > panels ? 1 : panels / kCtas;
  static_assert(rows * wide * kCtas == R * panels && rows % 8 == 0, "parts of equal size");
  const u32 part = ptx::cta_rank(), panel = part * wide % panels, row = part * wide / panels * rows;
  ptx::mbarrier_arrive_expect(full.address, bytes);
  ptx::tma_load_multicast(to.address() + panel * (R * 128) + row * 128, &from.map, full.address, at.batch,
                          at.head, at.row + row, panel, hint, (1 << kCtas) - 1);
}
// By one thread, after publish() by the writers and a sync. Rows past the end are not written.
template <class T, char... Dims, int R, int C>
KW_DEVICE void store_async(const SharedTile<T, R, C>& from, const TensorMap<T, Dims...>& to, Coords at) {
  ptx::tma_store(&to.map, from.address(), at.batch, at.head, at.row);
  ptx::tma_store_commit();
}
// By the thread that stored: shared memory may be written again / global memory is written.
KW_DEVICE void wait_store_read() { ptx::tma_store_wait_read(); }
KW_DEVICE void wait_store() { ptx::tma_store_wait(); }
// Shared stores of this thread before it are seen by the copy engine after the next sync.
KW_DEVICE void publish() { ptx::fence_async_proxy(); }

template <class T, int C> KW_DEVICE void load(const SharedTile<T, 64, C>& from, Operand<T, 64, C>& to) {
  const u32 lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
  for (int k = 0; k < C / 16; ++k)
    ptx::ldmatrix_x4(from.chunk(row, k * 2 + lane / 16), to.x[4 * k], to.x[4 * k + 1],
                     to.x[4 * k + 2], to.x[4 * k + 3]);
}
// Rounds to bf16, to nearest even.
template <int C> KW_DEVICE void store(const Accumulator<real, 64, C>& from, SharedTile<bf16, 64, C>& to) {
  const u32 lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
  for (int k = 0; k < C / 16; ++k)
    ptx::stmatrix_x4(to.chunk(row, k * 2 + lane / 16), ptx::pack_bf16(from.x[8 * k], from.x[8 * k + 1]),
                     ptx::pack_bf16(from.x[8 * k + 2], from.x[8 * k + 3]),
                     ptx::pack_bf16(from.x[8 * k + 4], from.x[8 * k + 5]),
                     ptx::pack_bf16(from.x[8 * k + 6], from.x[8 * k + 7]));
}
// One value a row; rows past the end are dropped.
template <char... Dims>
KW_DEVICE void store_rows(const RowVector<real, 64>& from, const Tensor<float, Dims...>& to, Coords at) {
  const int row = at.row + Accumulator<real, 64, 8>::thread_row(), rows = to.extent[2];
  if (threadIdx.x % 4 == 0) {
    if (row < rows) to(at.batch, at.head, row) = from.x[0];
    if (row + 8 < rows) to(at.batch, at.head, row + 8) = from.x[1];
  }
}

}  // namespace kw
