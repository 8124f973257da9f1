// Barriers and the block queue, counted by use.
//
// barrier[t] is the t-th use of a ring of N mbarriers: it knows its slot and its phase, so a kernel
// writes neither, and t never resets. The number of arrivals that complete a use is part of the
// type. A Queue hands numbers from one thread to everyone else.
//
// With kCtas above 1 they serve a cluster of so many CTAs: an arrival counts in every CTA, so each
// learns when all have released a slot; a queue's numbers come from CTA 0 and go to all.
#pragma once
#include "../ptx/memory.cuh"
namespace kw {

struct BarrierUse {
  u32 address, phase;
};
template <int kCtas> struct ClusterBarrierUse : BarrierUse {};

// kArrivals: of each CTA.
template <int N, int kArrivals, int kCtas = 1> struct Barriers {
  u64 bar[N];
  KW_DEVICE ClusterBarrierUse<kCtas> operator[](int t) const {
    return {{ptx::shared_address(bar) + u32(t) % N * 8, u32(t) / N & 1}};
  }
};
// kTakers: of each CTA.
template <int N, int kTakers, int kCtas = 1> struct Queue {
  Barriers<N, 1> full;
  Barriers<N, kTakers * kCtas> free;
  int value[N];
};

}  // namespace kw
