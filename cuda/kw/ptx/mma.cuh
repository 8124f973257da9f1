// Tensor-core products and asynchronous copies as every GPU since Ampere (sm_80) has them: one
// function is one PTX instruction, issued by a warp. Hopper's own are in wgmma.cuh and memory.cuh.
// Turing (sm_75) multiplies f16 alone, 8 columns of k at a time, and has no cp.async.
#pragma once
#include "memory.cuh"
namespace kw {
namespace ptx {

// PTX ISA 9.7.14.5, mma.m16n8k16: d = a @ b + c. A thread's fragments (9.7.14.5.8): d and c have rows
// g, g, g+8, g+8 and columns 2t, 2t+1 of 8 for g = lane / 4, t = lane % 4; `a` is four 8x8 quarters in
// the order (rows 0-7, k 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15); b0 is k 0-7, b1 is k 8-15.
#define KW_MMA(T, name)                                                                             \
  KW_DEVICE void mma(T, float* d, const u32* a, u32 b0, u32 b1, const float* c) {                   \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." name "." name                             \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"         \
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                   \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]),         \
                   "f"(c[1]), "f"(c[2]), "f"(c[3]));                                                \
  }
KW_MMA(bf16, "bf16")
#if __CUDA_ARCH__ >= 800
KW_MMA(f16, "f16")
#else
// PTX ISA 9.7.14.5.7, mma.m16n8k8: the same rows and columns; `a` is its left two quarters, then its
// right two, b a word each. The sum of both halves is rounded between them.
KW_DEVICE void mma_8(float* d, u32 a0, u32 a1, u32 b, const float* c) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a0), "r"(a1), "r"(b), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
KW_DEVICE void mma(f16, float* d, const u32* a, u32 b0, u32 b1, const float* c) {
  mma_8(d, a[0], a[1], b0, c);
  mma_8(d, a[2], a[3], b1, d);
}
#endif
#undef KW_MMA

// PTX ISA 9.7.14.5.15, ldmatrix with .trans: each 8x8 matrix arrives transposed.
KW_DEVICE void ldmatrix_x4_transposed(u32 address, u32& a, u32& b, u32& c, u32& d) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(address)
               : "memory");
}

// PTX ISA 9.7.9.25.3, cp.async: 16 bytes from global to shared memory past the registers and the L1
// cache; the bytes from `dynamic_tiles` (0 to 16) on are zero and not read.
KW_DEVICE void cp_async_16(u32 dst, const void* src, u32 take) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(take)
               : "memory");
}
// The same of 8 bytes, which go through the L1 cache.
KW_DEVICE void cp_async_8(u32 dst, const void* src, u32 take) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" ::"r"(dst), "l"(src), "r"(take)
               : "memory");
}
KW_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending> KW_DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// PTX ISA 9.7.9.8 and 9.7.9.11: plain loads and stores.
KW_DEVICE void store_shared(u32 address, u32 word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}
struct alignas(16) Words16 {
  u32 x[4];
};
KW_DEVICE Words16 load_shared_16(u32 address) {
  Words16 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x[0]), "=r"(v.x[1]), "=r"(v.x[2]), "=r"(v.x[3])
               : "r"(address)
               : "memory");
  return v;
}
struct alignas(8) Words8 {
  u32 x[2];
};
KW_DEVICE Words8 load_shared_8(u32 address) {
  Words8 v;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x[0]), "=r"(v.x[1]) : "r"(address) : "memory");
  return v;
}
KW_DEVICE void store_shared_16(u32 address, const Words16& v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x[0]), "r"(v.x[1]),
               "r"(v.x[2]), "r"(v.x[3])
               : "memory");
}
// PTX ISA 9.7.9.9, ld.global.nc: of memory that nobody writes while the kernel runs.
KW_DEVICE Words16 load_global_16(const void* from) {
  Words16 v;
  asm volatile("ld.global.nc.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x[0]), "=r"(v.x[1]), "=r"(v.x[2]), "=r"(v.x[3])
               : "l"(from));
  return v;
}
}  // namespace ptx
}  // namespace kw
