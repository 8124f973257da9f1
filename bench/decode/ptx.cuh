// The instructions that kernel.cu uses and CUDA C++ has no name for: barriers and copies of the copy engine, ldmatrix,
// mma, and approximate functions. Each is described under its name in the PTX manual (mbarrier, cp.async.bulk.tensor, ...).
#pragma once
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#define INLINE __device__ __forceinline__

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;

INLINE float minus_infinity() { return __int_as_float(0xff800000); }
INLINE uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

INLINE void barrier_init(uint32_t barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
// The barrier's phase ends when so many bytes have arrived.
INLINE void barrier_expect(uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
INLINE void barrier_wait(uint32_t barrier, int phase) {
    asm volatile("{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra DONE;\nbra WAIT;\nDONE:\n}"
                 ::"r"(barrier), "r"(phase) : "memory");
}

// Copies a box that begins at (column 0, row, column panel 0, head, block). What it reads leaves L2 first: nobody reads it again.
INLINE void copy_box(uint32_t to, const CUtensorMap* map, uint32_t barrier, int row, int head, int block) {
    const uint64_t evict_first = 0x12F0000000000000ull;
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint"
                 " [%0], [%1, {%3, %4, %3, %5, %6}], [%2], %7;"
                 ::"r"(to), "l"(map), "r"(barrier), "r"(0), "r"(row), "r"(head), "r"(block), "l"(evict_first) : "memory");
}

// Four matrices of 8 by 8, whose rows lanes 0-7, 8-15, 16-23 and 24-31 point to.
INLINE void load_matrices(uint32_t (&r)[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
INLINE void load_matrices_transposed(uint32_t (&r)[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
// c += a b, 16 by 8 by 16, where rows 8 to 15 of a are zeros.
INLINE void multiply(float (&c)[4], uint32_t a0, uint32_t a2, uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%5}, {%7,%8}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(0u), "r"(a2), "r"(b0), "r"(b1));
}

INLINE float exp2_fast(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
INLINE float tanh_fast(float x) { float y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
INLINE float inverse_fast(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
INLINE uint32_t pack(float low, float high) {
    uint32_t r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(low), "f"(high)); return r;
}

// Adds one, so that what this CTA wrote is seen by who reads the sum later, and what those before wrote is seen here.
INLINE unsigned arrive(unsigned* count) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(count) : "memory");
    return before;
}
