// A CTA on the host: what a printed kernel needs of a GPU, for its own text to run as C++.
//
// Each CUDA thread is a coroutine (ucontext) that goes on until it meets others: at a barrier, in a
// shuffle, in a product or a load that a warp does together. The atoms are CuTe's own but for what
// they do: layouts and traits are inherited, and only the instruction is emulated, from the figures
// of fragments in the PTX manual (9.7.14.5.8, m16n8k16; 9.7.14.5.15, ldmatrix).
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#define __grid_constant__
#define __shared__ static  // and `extern __shared__` is replaced
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __global__

#include <cutlass/arch/barrier.h>
#include <cutlass/numeric_conversion.h>

#include <cute/tensor.hpp>

struct Index {
  unsigned x;
};
inline Index threadIdx, blockIdx, blockDim;

// ---- coroutines

struct Meeting {
  int arrived = 0;
  unsigned round = 0;
};
struct Block {
  std::vector<ucontext_t> threads;
  std::vector<std::vector<char>> stacks;
  ucontext_t scheduler;
  std::vector<bool> done;
  Meeting everybody, warpgroups[8], warps[32];
  unsigned char lanes[32][32][64];  // what lanes of a warp show each other
  std::function<void()> kernel;
};
inline Block* block;

inline void give_way() {
  const unsigned me = threadIdx.x;
  swapcontext(&block->threads[me], &block->scheduler);
  threadIdx.x = me;
}
inline void meet(Meeting& at, int count) {
  const unsigned round = at.round;
  if (++at.arrived == count) {
    at.arrived = 0;
    ++at.round;
    return;
  }
  while (at.round == round) give_way();
}
inline void start_thread() {
  const unsigned me = threadIdx.x;
  block->kernel();
  block->done[me] = true;
  setcontext(&block->scheduler);
}
// Runs the kernel in `threads` threads; ends the program where all wait for ever.
inline void run_block(unsigned threads, unsigned index, std::function<void()> kernel) {
  static Block fresh;
  fresh = {};
  block = &fresh;
  blockIdx.x = index;
  blockDim.x = threads;
  block->kernel = std::move(kernel);
  block->threads.resize(threads);
  block->stacks.assign(threads, std::vector<char>(256 << 10));
  block->done.assign(threads, false);
  for (unsigned t = 0; t < threads; ++t) {
    getcontext(&block->threads[t]);
    block->threads[t].uc_stack.ss_sp = block->stacks[t].data();
    block->threads[t].uc_stack.ss_size = block->stacks[t].size();
    makecontext(&block->threads[t], start_thread, 0);
  }
  for (long turn = 0;; ++turn) {
    bool any = false;
    for (unsigned t = 0; t < threads; ++t) {
      if (block->done[t]) continue;
      any = true;
      threadIdx.x = t;
      swapcontext(&block->scheduler, &block->threads[t]);
    }
    if (!any) return;
    if (turn > 10'000'000) {
      std::printf("deadlock\n");
      std::exit(1);
    }
  }
}

// Shows the warp what this lane has; what lane n has is then at show(...)(n), until the next show.
template <class T>
inline std::vector<T> show(const T& mine) {
  static_assert(sizeof(T) <= 64);
  const unsigned warp = threadIdx.x / 32;
  std::memcpy(block->lanes[warp][threadIdx.x % 32], &mine, sizeof(T));
  meet(block->warps[warp], 32);
  std::vector<T> all(32);
  for (int n = 0; n < 32; ++n) std::memcpy(&all[n], block->lanes[warp][n], sizeof(T));
  meet(block->warps[warp], 32);
  return all;
}

// ---- what the text calls

inline void __syncthreads() { meet(block->everybody, int(block->threads.size())); }
inline void __syncwarp() { meet(block->warps[threadIdx.x / 32], 32); }
template <class Warpgroup>
void sync_warpgroup(unsigned count, Warpgroup warpgroup) {
  meet(block->warpgroups[unsigned(warpgroup)], int(count));
}
template <class T>
T __shfl_sync(unsigned, T x, int lane) {
  return show(x)[lane & 31];
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int lanes) {
  const int me = threadIdx.x % 32;
  return show(x)[me ^ lanes];
}
inline bool __any_sync(unsigned, bool x) {
  bool any = false;
  for (int one : show(int(x))) any |= one != 0;
  return any;
}
inline unsigned __ballot_sync(unsigned, bool x) {
  unsigned votes = 0;
  const std::vector<int> all = show(int(x));
  for (int n = 0; n < 32; ++n) votes |= unsigned(all[n] != 0) << n;
  return votes;
}
inline int __reduce_min_sync(unsigned, int x) {
  const std::vector<int> all = show(x);
  return *std::min_element(all.begin(), all.end());
}
inline int __reduce_max_sync(unsigned, int x) {
  const std::vector<int> all = show(x);
  return *std::max_element(all.begin(), all.end());
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
template <class T>
T __ldg(const T* x) {
  return *x;
}
inline void __trap() {
  std::printf("trap\n");
  std::exit(1);
}
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline int __vimax3_s32(int a, int b, int c) { return std::max(a, std::max(b, c)); }
inline float approx_ex2(float x) { return std::exp2(x); }
inline float approx_lg2(float x) { return std::log2(x); }
inline float approx_tanh(float x) { return std::tanh(x); }
inline float approx_rcp(float x) { return 1 / x; }
inline float approx_rsqrt(float x) { return 1 / std::sqrt(x); }

namespace cute {

template <class Real>  // the atom that is emulated
struct EmulatedProduct : Real {
  using T = typename MMA_Traits<Real>::ValTypeA;
  struct Lane {
    T a[8], b[4];
  };
  static void fma(float& d0, float& d1, float& d2, float& d3, uint32_t const& a0,
                  uint32_t const& a1, uint32_t const& a2, uint32_t const& a3, uint32_t const& b0,
                  uint32_t const& b1, float const& c0, float const& c1, float const& c2,
                  float const& c3) {
    const uint32_t words[6] = {a0, a1, a2, a3, b0, b1};
    Lane mine;
    std::memcpy(&mine, words, sizeof(mine));
    const std::vector<Lane> all = show(mine);
    const int group = threadIdx.x % 32 / 4, in_group = threadIdx.x % 4;
    float d[4] = {c0, c1, c2, c3};
    for (int n = 0; n < 4; ++n) {
      const int row = group + n / 2 * 8, column = in_group * 2 + n % 2;
      for (int k = 0; k < 16; ++k) {
        const int half = k % 2 + k / 8 * 4 + row / 8 * 2;  // of the eight of A
        const T a = all[row % 8 * 4 + k % 8 / 2].a[half];
        const T b = all[column * 4 + k % 8 / 2].b[k % 2 + k / 8 * 2];
        d[n] += float(a) * float(b);
      }
    }
    d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
  }
};
template <class Real>
struct MMA_Traits<EmulatedProduct<Real>> : MMA_Traits<Real> {};

template <class Real>
struct EmulatedProduct8 : Real {  // m16n8k8 (9.7.14.5.7)
  using T = typename MMA_Traits<Real>::ValTypeA;
  static void fma(float& d0, float& d1, float& d2, float& d3, uint32_t const& a0,
                  uint32_t const& a1, uint32_t const& b0, float const& c0, float const& c1,
                  float const& c2, float const& c3) {
    const uint32_t words[3] = {a0, a1, b0};
    struct Half {
      T a[4], b[2];
    } mine;
    std::memcpy(&mine, words, sizeof(mine));
    const std::vector<Half> all = show(mine);
    const int group = threadIdx.x % 32 / 4, in_group = threadIdx.x % 4;
    float d[4] = {c0, c1, c2, c3};
    for (int n = 0; n < 4; ++n)
      for (int k = 0; k < 8; ++k)
        d[n] += float(all[group * 4 + k / 2].a[n / 2 * 2 + k % 2]) *
                float(all[(in_group * 2 + n % 2) * 4 + k / 2].b[k % 2]);
    d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
  }
};
template <class Real>
struct MMA_Traits<EmulatedProduct8<Real>> : MMA_Traits<Real> {};

// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
template <bool kTransposed>
inline void load_matrices(const uint128_t& row, uint32_t (&d)[4]) {
  const std::vector<const uint128_t*> rows = show(&row);
  const int lane = threadIdx.x % 32;
  for (int m = 0; m < 4; ++m) {
    uint16_t two[2];
    for (int e = 0; e < 2; ++e) {
      const int r = kTransposed ? lane % 4 * 2 + e : lane / 4;
      const int c = kTransposed ? lane / 4 : lane % 4 * 2 + e;
      std::memcpy(&two[e], reinterpret_cast<const char*>(rows[m * 8 + r]) + c * 2, 2);
    }
    std::memcpy(&d[m], two, 4);
  }
}
struct LoadMatrices : SM75_U32x4_LDSM_N {
  static void copy(uint128_t const& s, uint32_t& d0, uint32_t& d1, uint32_t& d2, uint32_t& d3) {
    uint32_t d[4];
    load_matrices<false>(s, d);
    d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
  }
};
template <>
struct Copy_Traits<LoadMatrices> : Copy_Traits<SM75_U32x4_LDSM_N> {};
struct LoadTransposed : SM75_U16x8_LDSM_T {
  static void copy(uint128_t const& s, uint32_t& d0, uint32_t& d1, uint32_t& d2, uint32_t& d3) {
    uint32_t d[4];
    load_matrices<true>(s, d);
    d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
  }
};
template <>
struct Copy_Traits<LoadTransposed> : Copy_Traits<SM75_U16x8_LDSM_T> {};

// Done when asked for: when copies really come is what the schedules are checked for.
template <class S>
struct CopyAsync {};
template <class S>
struct Copy_Traits<CopyAsync<S>> : Copy_Traits<UniversalCopy<S>> {
  bool pred = true;
  Copy_Traits with(bool p) const {
    Copy_Traits t;
    t.pred = p;
    return t;
  }
  template <class TS, class SLayout, class TD, class DLayout>
  friend void copy_unpack(Copy_Traits const& traits, Tensor<TS, SLayout> const& src,
                          Tensor<TD, DLayout>& dst) {
    Tensor from = recast<S>(src);
    Tensor to = recast<S>(dst);
    if (traits.pred)
      std::memcpy(&to[0], &from[0], sizeof(S));
    else
      std::memset(&to[0], 0, sizeof(S));
  }
};

}  // namespace cute
