// Shared memory, mbarriers, named barriers and the bulk tensor copy engine (TMA): one function is
// one PTX instruction. Nothing here knows about tiles.
//
// Addresses are 32-bit offsets into the shared window. Tensor maps describe five-dimensional
// tensors (64 columns, row, panel, head, batch); coordinates are in elements, panels count by 64
// columns. Where a copy moves a part of wider rows, the first dimension is all of a row, and there is one
// panel.
#pragma once
#include "../scalar.cuh"
namespace kw {

// The driver's CUtensorMap: 128 opaque bytes, 64-aligned. NVRTC cannot include cuda.h.
struct alignas(64) OpaqueMap {
  u64 words[16];
};

namespace ptx {

// PTX ISA 10, %tid. Read anew wherever it stands: what is computed from it is not kept in registers
// from one turn of a loop to the next.
KW_DEVICE u32 thread_index() {
  u32 t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t & 1023;
}
// Likewise, but on Hopper with its own instructions, where what a warpgroup keeps costs no copies: there it is kept.
KW_DEVICE u32 thread_anew() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  return threadIdx.x;
#else
  return thread_index();
#endif
}
KW_DEVICE u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

// PTX ISA 9.7.13.15, mbarrier. An mbarrier completes a phase when its pending arrivals are zero and
// every byte announced by expect_tx has come.
KW_DEVICE void mbarrier_init(u32 bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count));
}
KW_DEVICE void mbarrier_arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
KW_DEVICE void mbarrier_arrive_expect(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}
// Returns once the phase of the given parity has completed. A waiter two phases behind would take
// the wrong one for it: no wait may lag that far.
KW_DEVICE void mbarrier_wait(u32 bar, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra READY;\nbra AGAIN;\nREADY:\n}" ::"r"(bar),
      "r"(parity)
      : "memory");
}
// PTX ISA 9.7.8.24, mapa; 9.7.13.12, barrier.cluster; 10, %cluster_ctarank and %clusterid. The CTAs of a
// cluster (CTAs) see each other's shared memory: `there` is an own address, as CTA `cta` has it.
KW_DEVICE u32 cta_rank() {
  u32 r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
KW_DEVICE u32 cluster_id() {
  u32 r;
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(r));
  return r;
}
KW_DEVICE u32 shared_address_in(u32 address, u32 cta) {
  u32 there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(cta));
  return there;
}
KW_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
// The default form orders enough for a slot that is given back; `.release.cluster` would wait for
// every write of the thread and costs a fifth of an attention kernel's time.
KW_DEVICE void mbarrier_arrive_there(u32 there) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
}
KW_DEVICE void mbarrier_arrive_expect_there(u32 there, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%0], %1;" ::"r"(there), "r"(bytes)
               : "memory");
}
// PTX ISA 9.7.9.13, st.async: the word's four bytes complete at the mbarrier of the same CTA.
KW_DEVICE void store_word_there(u32 there, u32 word, u32 bar_there) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(there),
               "r"(word), "r"(bar_there)
               : "memory");
}
// Makes initialised mbarriers visible to the async proxy.
KW_DEVICE void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// PTX ISA 9.7.13.4: generic stores before it are seen by async-proxy reads that are ordered after.
KW_DEVICE void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// The same of global memory, in both directions.
KW_DEVICE void fence_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
// PTX ISA 8.7, 9.7.9.8, 9.7.9.12: a value by which one CTA tells another of what it has written.
KW_DEVICE float load_acquire(const float* from) {
  float x;
  asm volatile("ld.acquire.gpu.global.f32 %0, [%1];" : "=f"(x) : "l"(from) : "memory");
  return x;
}
KW_DEVICE void store_release(float* to, float x) {
  asm volatile("st.release.gpu.global.f32 [%0], %1;" ::"l"(to), "f"(x) : "memory");
}

// PTX ISA 9.7.13.1: barrier `id` (1 to 15) among `threads` threads, whole warps.
KW_DEVICE void bar_sync(u32 id, u32 threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
KW_DEVICE void bar_arrive(u32 id, u32 threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// PTX ISA 9.7.9.27.1, cp.async.bulk.tensor. The destination is 128-byte aligned; out-of-range
// elements are read as zero and not written.
KW_DEVICE void tma_load_panel(u32 dst, const OpaqueMap* map, u32 bar, int batch, int head, int row, int panel,
                              u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;" ::"r"(dst),
      "l"(map), "r"(0), "r"(row), "r"(panel), "r"(head), "r"(batch), "r"(bar), "l"(hint)
      : "memory");
}
// The same of a box that begins with the first panel.
KW_DEVICE void tma_load(u32 dst, const OpaqueMap* map, u32 bar, int batch, int head, int row, u64 hint) {
  tma_load_panel(dst, map, bar, batch, head, row, 0, hint);
}
// The same for several CTAs at once: box and bytes go to the same place of each in `ctas`, one bit a
// CTA, and to the barrier at the same place there. `panel` is the first panel of the box.
KW_DEVICE void tma_load_multicast(u32 dst, const OpaqueMap* map, u32 bar, int batch, int head, int row,
                                  int panel, u64 hint, unsigned short ctas) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %9, %8;" ::"r"(dst),
      "l"(map), "r"(0), "r"(row), "r"(panel), "r"(head), "r"(batch), "r"(bar), "l"(hint), "h"(ctas)
      : "memory");
}
KW_DEVICE void tma_store(const OpaqueMap* map, u32 src, int batch, int head, int row) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];" ::"l"(
          map),
      "r"(0), "r"(row), "r"(0), "r"(head), "r"(batch), "r"(src)
      : "memory");
}
// A panel from column `column` on of rows that are wider: the map's first dimension is all of a row.
KW_DEVICE void tma_load_columns(u32 dst, const OpaqueMap* map, u32 bar, int batch, int head, int row,
                                int column, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;" ::"r"(dst),
      "l"(map), "r"(column), "r"(row), "r"(0), "r"(head), "r"(batch), "r"(bar), "l"(hint)
      : "memory");
}
KW_DEVICE void tma_store_columns(const OpaqueMap* map, u32 src, int batch, int head, int row, int column) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];" ::"l"(map),
      "r"(column), "r"(row), "r"(0), "r"(head), "r"(batch), "r"(src)
      : "memory");
}
// PTX ISA 9.7.9.25.4, cp.async.bulk, of bytes that follow each other: addresses and the number of bytes are
// multiples of 16. And cp.reduce.async.bulk, which adds floats, each in one piece, in no order.
KW_DEVICE void bulk_load(u32 dst, const void* from, u32 bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
               "l"(from), "r"(bytes), "r"(bar)
               : "memory");
}
// The same from shared memory to that of another CTA of the cluster, whose mbarrier counts the bytes.
KW_DEVICE void bulk_send(u32 there, u32 src, u32 bytes, u32 bar_there) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(there),
               "r"(src), "r"(bytes), "r"(bar_there)
               : "memory");
}
KW_DEVICE void bulk_add(float* to, u32 src, u32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(src),
               "r"(bytes)
               : "memory");
}
KW_DEVICE void bulk_add(bf16* to, u32 src, u32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], %2;" ::"l"(to), "r"(src),
               "r"(bytes)
               : "memory");
}
KW_DEVICE void bulk_add(f16* to, u32 src, u32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], %2;" ::"l"(to), "r"(src),
               "r"(bytes)
               : "memory");
}
// PTX ISA 9.7.13.6, red: adds to a float in global memory and returns nothing. Subnormal floats count as zero.
KW_DEVICE void add_if(bool here, float* to, float x) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p red.global.add.f32 [%1], %2;\n}" ::"r"(u32(here)), "l"(to), "f"(x)
               : "memory");
}
// The same of four that follow each other, from a multiple of 16 bytes on, each in one piece. Hopper's.
KW_DEVICE void add_four(float* to, float a, float b, float c, float d) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
KW_DEVICE void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
KW_DEVICE void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
KW_DEVICE void tma_store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// PTX ISA 9.7.15, ldmatrix and stmatrix: four 8x8 matrices of 16-bit elements, one row address a
// lane.
KW_DEVICE void ldmatrix_x4(u32 address, u32& a, u32& b, u32& c, u32& d) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(address)
               : "memory");
}
KW_DEVICE void stmatrix_x4(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
// Each matrix transposed.
KW_DEVICE void stmatrix_x4_transposed(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}
// PTX ISA 9.7.15.5.17, movmatrix: an 8x8 matrix of 16-bit elements in a warp's registers, transposed.
KW_DEVICE u32 transposed(u32 words) {
  u32 y;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(words));
  return y;
}
// Two elements in a word, rounded to nearest even; the first argument says to which type.
KW_DEVICE u32 pack(bf16, float low, float high) {
  u32 y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
KW_DEVICE u32 pack(f16, float low, float high) {
  u32 y;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
#else
  asm("{.reg .f16 a, b;\ncvt.rn.f16.f32 a, %1;\ncvt.rn.f16.f32 b, %2;\nmov.b32 %0, {b, a};}"
      : "=r"(y)
      : "f"(high), "f"(low));
#endif
  return y;
}

// The same address, of which the compiler sees no parts: it stays one register pair to which an
// offset is added in one instruction, and is not spread over the sums of all elements read.
template <class T> KW_DEVICE T* one_address(T* from) {
  asm("" : "+l"(from));
  return from;
}

// The same number, which the compiler knows nothing of before this place: what is made of it is not made
// earlier, once for all rounds of a loop, to be kept in registers.
KW_DEVICE int not_before_here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

// PTX ISA 9.7.20, setmaxnreg: every warp of the warpgroup runs it; N is a multiple of 8.
template <int kRegisters> KW_DEVICE void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters> KW_DEVICE void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
}  // namespace ptx
}  // namespace kw
