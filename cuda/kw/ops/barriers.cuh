// Barriers: initialising, waiting, arriving. wait(b[t]) passes when the t-th use is complete;
// wait_free(b[t]) when the use of the same slot before it is, at once for the first uses of a ring.
#pragma once
#include "warpgroups.cuh"
namespace kw {

namespace detail {
template <int N, int kArrivals, int kCtas> KW_DEVICE void init_one(Barriers<N, kArrivals, kCtas>& b) {
  for (int slot = 0; slot < N; ++slot)
    ptx::mbarrier_init(ptx::shared_address(b.bar + slot), kArrivals * kCtas);
}
template <int N, int kTakers, int kCtas> KW_DEVICE void init_one(Queue<N, kTakers, kCtas>& q) {
  init_one(q.full);
  init_one(q.free);
}
}  // namespace detail

// Every thread of the block calls it once, before any other use of the barriers.
template <class... Barrier> KW_DEVICE void init(Barrier&... barriers) {
  if (threadIdx.x == 0) {
    (detail::init_one(barriers), ...);
    ptx::fence_barrier_init();
  }
  __syncthreads();
}

KW_DEVICE void wait(BarrierUse b) { ptx::mbarrier_wait(b.address, b.phase); }
KW_DEVICE void wait_free(BarrierUse b) { ptx::mbarrier_wait(b.address, b.phase ^ 1); }
// One arrival a warp, by its first lane for all: the warp must have converged, as it has after every
// aligned instruction (ldmatrix, wgmma, a wgmma_wait). At a cluster's barrier it arrives in every
// CTA, lane r in CTA r.
template <int kCtas> KW_DEVICE void arrive(ClusterBarrierUse<kCtas> b) {
  const u32 lane = threadIdx.x % 32;
  if constexpr (kCtas == 1) {
    if (lane == 0) ptx::mbarrier_arrive(b.address);
  } else {
    if (lane < kCtas) ptx::mbarrier_arrive_there(ptx::shared_address_in(b.address, lane));
  }
}

}  // namespace kw
