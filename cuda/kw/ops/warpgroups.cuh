// Warpgroups: who runs what. A warpgroup is a warpgroup (4 warps); registers move between warpgroups; named
// barriers order them. Named barrier 1+w is warpgroup w's turn, 8+w its own four warps.
#pragma once
#include "../tile/barriers.cuh"
#include "../tile/tiles.cuh"
namespace kw {

// The warpgroup of this thread, the same in all lanes (ptxas must know: a branch on it is uniform).
KW_DEVICE int warpgroup_index() { return __shfl_sync(0xffffffffu, threadIdx.x / 128, 0); }
// One thread of the warpgroup: the first of its warp number `warp`.
KW_DEVICE bool is_thread(int warp) { return threadIdx.x % 128 == u32(warp) * 32; }

#ifdef KW_EXACT  // numbers of the small algebra take twice the registers: what is over goes to memory
template <int kRegisters> KW_DEVICE void registers_up() {}
template <int kRegisters> KW_DEVICE void registers_down() {}
#else
template <int kRegisters> KW_DEVICE void registers_up() { ptx::setmaxnreg_inc<kRegisters>(); }
template <int kRegisters> KW_DEVICE void registers_down() { ptx::setmaxnreg_dec<kRegisters>(); }
#endif

// The number of this block in its grid.
KW_DEVICE int block_index(int) { return blockIdx.x; }
// And that of its cluster.
KW_DEVICE int cluster_index(int) { return ptx::cluster_id(); }

template <class S> KW_DEVICE S& shared_memory() {
  extern __shared__ __align__(1024) unsigned char kw_dynamic_shared[];
  return *reinterpret_cast<S*>(kw_dynamic_shared);
}

// Which CTA of its cluster of kCtas this is; the launch makes the clusters.
template <int kCtas> KW_DEVICE int cluster() { return ptx::cta_rank(); }
// Every thread of every CTA: before the first use of another's barriers, and before the end, so that
// nobody leaves while others still reach into its shared memory.
KW_DEVICE void sync_cluster() { ptx::cluster_sync(); }

// All threads of the block.
KW_DEVICE void sync_block() { __syncthreads(); }
KW_DEVICE void sync_warpgroup(int warpgroup) { ptx::bar_sync(8 + warpgroup, 128); }
// Two warpgroups alternate: order_wait(w) passes when order_arrive(w) has been called as often.
KW_DEVICE void order_wait(int warpgroup) { ptx::bar_sync(1 + warpgroup, 256); }
KW_DEVICE void order_arrive(int warpgroup) { ptx::bar_arrive(1 + warpgroup, 256); }

}  // namespace kw
