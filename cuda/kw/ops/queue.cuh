// The queue of blocks: one thread draws block numbers from a counter in global memory and offers
// each to everybody; the others take them in the same order.
//
//   for (auto [u, w] : kw::offer(shared.blocks, args.queue, count))   one thread
//   for (auto [u, w] : kw::take(shared.blocks, count))                another single thread
//   for (auto [u, w] : kw::take_warp(shared.blocks, count))           every warp of a worker
//
// u counts the blocks this thread block has worked on, w is the block's number. The first number is
// blockIdx.x; later ones come from the counter, drawn before the block's own work so that the
// atomic's latency is hidden. The first number past the end is offered too: it ends every loop. The
// last thread block to come leaves zeros for the next launch.
#pragma once
#include "barriers.cuh"
#include "../tile/tensors.cuh"
namespace kw {

struct BlockUse {
  int u, w;
};
struct QueueEnd {};

namespace detail {
template <int N, int kTakers> struct Offer {
  Queue<N, kTakers>& queue;
  u32* counter;
  int count, u, w, next;
  KW_DEVICE Offer begin() const { return *this; }
  KW_DEVICE QueueEnd end() const { return {}; }
  KW_DEVICE bool operator!=(QueueEnd) {
    wait_free(queue.free[u]);
    queue.value[u32(u) % N] = w;
    ptx::mbarrier_arrive(queue.full[u].address);
    if (w < count) return true;
    if (atomicInc(counter + 1, gridDim.x - 1) == gridDim.x - 1) atomicExch(counter, 0);
    return false;
  }
  KW_DEVICE BlockUse operator*() {
    next = atomicAdd(counter, 1) + gridDim.x;
    return {u, w};
  }
  KW_DEVICE void operator++() {
    w = next;
    ++u;
  }
};
template <int N, int kTakers, bool kWarp> struct Take {
  Queue<N, kTakers>& queue;
  int count, u, w;
  KW_DEVICE Take begin() const { return *this; }
  KW_DEVICE QueueEnd end() const { return {}; }
  KW_DEVICE bool operator!=(QueueEnd) {
    wait(queue.full[u]);
    w = queue.value[u32(u) % N];
    if constexpr (kWarp) {
      w = __shfl_sync(0xffffffffu, w, 0);
      arrive(queue.free[u]);
    } else {
      ptx::mbarrier_arrive(queue.free[u].address);
    }
    return w < count;
  }
  KW_DEVICE BlockUse operator*() const { return {u, w}; }
  KW_DEVICE void operator++() { ++u; }
};
}  // namespace detail

template <int N, int kTakers>
KW_DEVICE detail::Offer<N, kTakers> offer(Queue<N, kTakers>& queue, Workspace<2> counter, int count) {
  return {queue, counter.words, count, 0, int(blockIdx.x), 0};
}
template <int N, int kTakers>
KW_DEVICE detail::Take<N, kTakers, false> take(Queue<N, kTakers>& queue, int count) {
  return {queue, count, 0, 0};
}
template <int N, int kTakers>
KW_DEVICE detail::Take<N, kTakers, true> take_warp(Queue<N, kTakers>& queue, int count) {
  return {queue, count, 0, 0};
}

}  // namespace kw
