// Blocks of the output and who works on them. Blocks that are all alike are dealt out in turn:
//
//   for (auto [u, w] : kw::static_tiles<CTAS>(count))               everybody
//
// Others come from a queue: one thread draws block numbers from a counter in global memory and
// offers each to everybody, and they take them in the same order:
//
//   kw::schedule_tiles(shared.work, args.counter, count);            one thread, which does nothing else
//   for (auto [u, w] : kw::dynamic_tiles(shared.work, count))        another single thread
//   for (auto [u, w] : kw::dynamic_tiles_warp(shared.work, count))   every warp of a warpgroup
//
// u counts the blocks that this cluster has worked on, w is the block's number. A cluster's first
// block is its own number; a queue draws the next while this one is worked on, and the first number
// past the end ends every loop. In a cluster CTA 0 draws for all. The last cluster to come leaves
// zeros for the next launch.
#pragma once
#include "barriers.cuh"
#include "../tile/tensors.cuh"
namespace kw {

struct BlockUse {
  int u, w;
};
struct QueueEnd {};

namespace detail {
struct StaticTiles {
  int count, u, w, step;
  KW_DEVICE StaticTiles begin() const { return *this; }
  KW_DEVICE QueueEnd end() const { return {}; }
  KW_DEVICE bool operator!=(QueueEnd) const { return w < count; }
  KW_DEVICE BlockUse operator*() const { return {u, w}; }
  KW_DEVICE void operator++() {
    w += step;
    ++u;
  }
};
// Gives w to everybody who takes; the slot is free.
template <int N, int kTakers, int kCtas> KW_DEVICE void hand_out(Queue<N, kTakers, kCtas>& q, int u, int w) {
  int& value = q.value[u32(u) % N];
  const u32 full = q.full[u].address;
  if constexpr (kCtas == 1) {
    value = w;
    ptx::mbarrier_arrive(full);
  } else {
    for (u32 cta = 0; cta < kCtas; ++cta) {
      const u32 full_there = ptx::shared_address_in(full, cta);
      ptx::mbarrier_arrive_expect_there(full_there, 4);
      ptx::store_word_there(ptx::shared_address_in(ptx::shared_address(&value), cta), w, full_there);
    }
  }
}
template <int N, int kTakers, int kCtas> KW_DEVICE void give_back(Queue<N, kTakers, kCtas>& q, int u) {
  const u32 free = q.free[u].address;
  if constexpr (kCtas == 1)
    ptx::mbarrier_arrive(free);
  else
    ptx::mbarrier_arrive_there(ptx::shared_address_in(free, 0));
}
template <int N, int kTakers, int kCtas, bool kWarp> struct DynamicTiles {
  Queue<N, kTakers, kCtas>& queue;
  int count, u, w;
  KW_DEVICE DynamicTiles begin() const { return *this; }
  KW_DEVICE QueueEnd end() const { return {}; }
  KW_DEVICE bool operator!=(QueueEnd) {
    wait(queue.full[u]);
    w = queue.value[u32(u) % N];
    if constexpr (kWarp) w = __shfl_sync(0xffffffffu, w, 0);
    if (!kWarp || threadIdx.x % 32 == 0) give_back(queue, u);
    return w < count;
  }
  KW_DEVICE BlockUse operator*() const { return {u, w}; }
  KW_DEVICE void operator++() { ++u; }
};
}  // namespace detail

template <int kCtas> KW_DEVICE detail::StaticTiles static_tiles(int count) {
  return {count, 0, int(blockIdx.x) / kCtas, int(gridDim.x) / kCtas};
}
template <int N, int kTakers, int kCtas>
KW_DEVICE void schedule_tiles(Queue<N, kTakers, kCtas>& queue, Workspace<2> counter, int count) {
  if (kCtas > 1 && ptx::cta_rank() != 0) return;
  const int step = gridDim.x / kCtas;
  int w = blockIdx.x / kCtas;
#pragma unroll 1
  for (int u = 0;; ++u) {
    detail::hand_out(queue, u, w);
    if (w >= count) break;
    wait_free(queue.free[u + 1]);  // drawn no earlier than needed: the last blocks go to whoever is idle
    w = atomicAdd(counter.words, 1) + step;
  }
  if (atomicInc(counter.words + 1, step - 1) == step - 1) atomicExch(counter.words, 0);
}
template <int N, int kTakers, int kCtas>
KW_DEVICE detail::DynamicTiles<N, kTakers, kCtas, false> dynamic_tiles(Queue<N, kTakers, kCtas>& queue, int count) {
  return {queue, count, 0, 0};
}
template <int N, int kTakers, int kCtas>
KW_DEVICE detail::DynamicTiles<N, kTakers, kCtas, true> dynamic_tiles_warp(Queue<N, kTakers, kCtas>& queue, int count) {
  return {queue, count, 0, 0};
}

}  // namespace kw
