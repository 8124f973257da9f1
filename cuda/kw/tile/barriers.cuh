// Barriers and the block queue, counted by use.
//
// barrier[t] is the t-th use of a ring of N mbarriers: it knows its slot and its phase, so a kernel
// writes neither, and t never resets. The number of arrivals that complete a use is part of the
// type. A Queue hands numbers from one thread to everyone else.
#pragma once
#include "../ptx/memory.cuh"
namespace kw {

struct BarrierUse {
  u32 address, phase;
};
template <int N, int kArrivals> struct Barriers {
  u64 bar[N];
  KW_DEVICE BarrierUse operator[](int t) const {
    return {ptx::shared_address(bar) + u32(t) % N * 8, u32(t) / N & 1};
  }
};
template <int N, int kTakers> struct Queue {
  Barriers<N, 1> full;
  Barriers<N, kTakers> free;
  int value[N];
};

}  // namespace kw
