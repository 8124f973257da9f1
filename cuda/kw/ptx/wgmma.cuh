// PTX ISA 9.7.15.5, wgmma: m64nNk16, bf16 or f16 operands, fp32 accumulator, issued by one warpgroup.
//
// B always comes from shared memory; A from shared memory (ss) or from registers (rs). An inline
// asm statement must name every accumulator register, so the lists below spell them in eights:
// KW_OUT8(g) names registers 8g to 8g+7 in the text, KW_REG8(g) binds them. One KW_WGMMA line adds
// a width N (a multiple of 16 here, so that N/2 registers are whole eights) for both types.
//
// The constraint that bites: between issue and the wait that covers it neither the accumulator nor
// a register operand may be touched; ptxas then serialises the instructions and says so only as an
// info line ("Potential Performance Loss").
#pragma once
#include "../scalar.cuh"
namespace kw {
namespace ptx {

KW_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
KW_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending> KW_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

#define KW_OUT8_0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define KW_OUT8_1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define KW_OUT8_2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define KW_OUT8_3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define KW_OUT8_4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define KW_OUT8_5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define KW_OUT8_6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define KW_OUT8_7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define KW_OUT8_8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define KW_OUT8_9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define KW_OUT8_10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define KW_OUT8_11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define KW_OUT8_12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define KW_OUT8_13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define KW_OUT8_14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define KW_OUT8_15 "%120, %121, %122, %123, %124, %125, %126, %127"
#define KW_OUT8(g) KW_OUT8_##g
#define KW_REG8(g)                                                                        \
  "+f"(d[8 * g]), "+f"(d[8 * g + 1]), "+f"(d[8 * g + 2]), "+f"(d[8 * g + 3]),             \
      "+f"(d[8 * g + 4]), "+f"(d[8 * g + 5]), "+f"(d[8 * g + 6]), "+f"(d[8 * g + 7])

#define KW_OUT_16 KW_OUT8(0)
#define KW_REG_16 KW_REG8(0)
#define KW_OUT_32 KW_OUT_16 ", " KW_OUT8(1)
#define KW_REG_32 KW_REG_16, KW_REG8(1)
#define KW_OUT_48 KW_OUT_32 ", " KW_OUT8(2)
#define KW_REG_48 KW_REG_32, KW_REG8(2)
#define KW_OUT_64 KW_OUT_48 ", " KW_OUT8(3)
#define KW_REG_64 KW_REG_48, KW_REG8(3)
#define KW_OUT_80 KW_OUT_64 ", " KW_OUT8(4)
#define KW_REG_80 KW_REG_64, KW_REG8(4)
#define KW_OUT_96 KW_OUT_80 ", " KW_OUT8(5)
#define KW_REG_96 KW_REG_80, KW_REG8(5)
#define KW_OUT_112 KW_OUT_96 ", " KW_OUT8(6)
#define KW_REG_112 KW_REG_96, KW_REG8(6)
#define KW_OUT_128 KW_OUT_112 ", " KW_OUT8(7)
#define KW_REG_128 KW_REG_112, KW_REG8(7)
#define KW_OUT_144 KW_OUT_128 ", " KW_OUT8(8)
#define KW_REG_144 KW_REG_128, KW_REG8(8)
#define KW_OUT_160 KW_OUT_144 ", " KW_OUT8(9)
#define KW_REG_160 KW_REG_144, KW_REG8(9)
#define KW_OUT_176 KW_OUT_160 ", " KW_OUT8(10)
#define KW_REG_176 KW_REG_160, KW_REG8(10)
#define KW_OUT_192 KW_OUT_176 ", " KW_OUT8(11)
#define KW_REG_192 KW_REG_176, KW_REG8(11)
#define KW_OUT_208 KW_OUT_192 ", " KW_OUT8(12)
#define KW_REG_208 KW_REG_192, KW_REG8(12)
#define KW_OUT_224 KW_OUT_208 ", " KW_OUT8(13)
#define KW_REG_224 KW_REG_208, KW_REG8(13)
#define KW_OUT_240 KW_OUT_224 ", " KW_OUT8(14)
#define KW_REG_240 KW_REG_224, KW_REG8(14)
#define KW_OUT_256 KW_OUT_240 ", " KW_OUT8(15)
#define KW_REG_256 KW_REG_240, KW_REG8(15)

template <class T, int N> struct Wgmma;

// text operands after the accumulators: ss: a, b, accumulate, transpose_b, transpose_a; rs: a0..a3, b, ...
#define KW_WGMMA_OF(T, N, S0, S1, S2, S3, S4, S5, S6)                                         \
  template <> struct Wgmma<T, N> {                                                            \
    template <int kTransposeB, int kTransposeA = 0>                                           \
    static KW_DEVICE void ss(float (&d)[N / 2], u64 a, u64 b, int accumulate) {               \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " S2 ", 0;\n"                            \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" KW_OUT_##N \
                   "}, " S0 ", " S1 ", p, 1, 1, " S4 ", " S3 ";\n}"                           \
                   : KW_REG_##N                                                               \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(kTransposeB), "n"(kTransposeA));    \
    }                                                                                         \
    template <int kTransposeB>                                                                \
    static KW_DEVICE void rs(float (&d)[N / 2], u32 a0, u32 a1, u32 a2, u32 a3, u64 b,        \
                             int accumulate) {                                                \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " S5 ", 0;\n"                            \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" KW_OUT_##N \
                   "}, {" S0 ", " S1 ", " S2 ", " S3 "}, " S4 ", p, 1, 1, " S6 ";\n}"         \
                   : KW_REG_##N                                                               \
                   : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate),             \
                     "n"(kTransposeB));                                                       \
    }                                                                                         \
  };
#define KW_WGMMA(N, ...) KW_WGMMA_OF(bf16, N, __VA_ARGS__) KW_WGMMA_OF(f16, N, __VA_ARGS__)
KW_WGMMA(16, "%8", "%9", "%10", "%11", "%12", "%13", "%14")
KW_WGMMA(32, "%16", "%17", "%18", "%19", "%20", "%21", "%22")
KW_WGMMA(48, "%24", "%25", "%26", "%27", "%28", "%29", "%30")
KW_WGMMA(64, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
KW_WGMMA(80, "%40", "%41", "%42", "%43", "%44", "%45", "%46")
KW_WGMMA(96, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
KW_WGMMA(112, "%56", "%57", "%58", "%59", "%60", "%61", "%62")
KW_WGMMA(128, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
KW_WGMMA(144, "%72", "%73", "%74", "%75", "%76", "%77", "%78")
KW_WGMMA(160, "%80", "%81", "%82", "%83", "%84", "%85", "%86")
KW_WGMMA(176, "%88", "%89", "%90", "%91", "%92", "%93", "%94")
KW_WGMMA(192, "%96", "%97", "%98", "%99", "%100", "%101", "%102")
KW_WGMMA(256, "%128", "%129", "%130", "%131", "%132", "%133", "%134")
#undef KW_WGMMA
#undef KW_WGMMA_OF
}  // namespace ptx
}  // namespace kw
