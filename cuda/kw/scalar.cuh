// The scalars: element types, the accumulation type, sizes and indices, and the functions that map
// bodies and index arithmetic may use.
//
// `kw::real` is what accumulators hold and map bodies compute in. `size` is a positive int, `index`
// a non-negative one; both are plain ints for the compiler and facts for whoever proves that a
// division floors. `floor_div` and `floor_mod` are Python's // and %; a kernel writes C's / and %
// only where both operands are provably not negative.
//
// With -DKW_EXACT `kw::real` is an element of a small algebra instead (exact/real.cuh), and what
// computes with it stands in exact/: a build to be held against the executor bit for bit.
#pragma once
#define KW_DEVICE __device__ __forceinline__
namespace kw {

using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;
#ifndef KW_EXACT
using real = float;
#endif
using size = int;
using index = int;

struct alignas(2) bf16 {
  unsigned short bits;
};
struct alignas(2) f16 {
  unsigned short bits;
};

// FP8 with four bits of exponent, three of mantissa and no infinity (PTX's .e4m3). Nothing computes in
// it: upcast() makes elements of it.
struct e4m3 {
  unsigned char bits;
};

constexpr float minus_infinity = __builtin_bit_cast(float, 0xff800000u);
constexpr float log2e = 1.4426950408889634f, ln2 = 0.6931471805599453f;

#ifndef KW_EXACT
// PTX ISA 9.7.3, "Floating Point Instructions": the approximate forms flush subnormals to zero.
KW_DEVICE float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
KW_DEVICE float log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
KW_DEVICE float tanh(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
KW_DEVICE float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
KW_DEVICE float rsqrt(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// The nearest number of bf16, to even.
KW_DEVICE float to_bf16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return __uint_as_float(u32(y) << 16);
}
KW_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
// A sum or difference within a comparison: of numbers that were rounded before. The compiler makes one
// fma of a product and a + or -, and a comparison may then have another outcome than in PyTorch, which
// rounds both: x * y - y * x would not be 0. It leaves these alone (CUDA Math API, __fadd_rn).
KW_DEVICE float rounded_sum(float a, float b) { return __fadd_rn(a, b); }
KW_DEVICE float rounded_difference(float a, float b) { return __fsub_rn(a, b); }
KW_DEVICE float min(float a, float b) { return fminf(a, b); }
KW_DEVICE float max(float a, float b) { return fmaxf(a, b); }
#endif
// Of places that stand for reals, whose sums are exact, and of a build in an algebra.
template <class A, class B> KW_DEVICE auto rounded_sum(A a, B b) { return a + b; }
template <class A, class B> KW_DEVICE auto rounded_difference(A a, B b) { return a - b; }
KW_DEVICE int min(int a, int b) { return a < b ? a : b; }
KW_DEVICE int max(int a, int b) { return a > b ? a : b; }
KW_DEVICE int abs(int a) { return a < 0 ? -a : a; }

// b is positive; a is any int, and no step on the way overflows: ~a = -1 - a is one where a is negative,
// and ~(~a / b) = -1 - (-1 - a) / b. For a constant power of two both become one shift or mask.
KW_DEVICE int floor_div(int a, int b) {
  if ((b & (b - 1)) == 0) return a >> (31 - __clz(b));
  return a >= 0 ? a / b : ~(~a / b);
}
KW_DEVICE int floor_mod(int a, int b) {
  if ((b & (b - 1)) == 0) return a & (b - 1);
  return a >= 0 ? a % b : b - 1 - ~a % b;
}
// TL's << and >>, by any count: one that is none of the bits of an int moves all of them out. PTX's
// shl and shr do so; C's << and >> are written where the count is known to be one of 0 to 31.
KW_DEVICE int shift_left(int a, int count) {
  int y;
  asm("shl.b32 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(count));
  return y;
}
KW_DEVICE int shift_right(int a, int count) {
  int y;
  asm("shr.s32 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(count));
  return y;
}
// The next whole number where b leaves a rest: a + b - 1 may be no int.
KW_DEVICE int ceil_div(int a, int b) { return floor_div(a, b) + (floor_mod(a, b) != 0); }

// How many query heads to work on together: so that their keys and values (`bytes` a key head, for
// K and V together) stay in half of a 64 MB L2, but so many that they have 200 blocks of the output
// (`blocks` a query head), about three for each pair of multiprocessors: with fewer, long blocks are
// left for the end. A power of two of key heads, `group` query heads each, and a divisor of `heads`.
// Evaluated by whoever launches.
KW_DEVICE int heads_at_once(i64 bytes, int blocks, int group, int heads) {
  int section = 1;
  while (section * 2 * bytes <= (32 << 20) || i64(section) * group * blocks < 200) section *= 2;
  int a = section * group, b = heads;
  while (b) {
    const int rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Elements of tensors that nobody writes while a kernel runs. An int has 32 bits: where an i64 has
// more, the kernel ends with an error, which its launcher sees. That is decided where the element
// becomes an int, not where it is read: several that are read first, and then narrowed together, wait
// for memory once.
KW_DEVICE void end_unless(bool holds) {
  // A store to no address, and no trap: that would be a branch, and wgmma in flight be waited for.
  asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, %0, 0;\n@p st.global.u32 [%1], 0;\n}" ::"r"(u32(holds)), "l"(0ll));
}
struct Wide {
  i64 value;
  KW_DEVICE bool fits() const { return value == int(value); }
  KW_DEVICE operator int() const {
    end_unless(fits());
    return int(value);
  }
};
KW_DEVICE int from_memory(const int* x) { return __ldg(x); }
KW_DEVICE bool from_memory(const bool* x) { return __ldg(reinterpret_cast<const unsigned char*>(x)) != 0; }
KW_DEVICE Wide from_memory(const i64* x) { return {__ldg(x)}; }
template <int N, class T, class Y> KW_DEVICE void narrow(Y (&to)[N], const T (&from)[N]) {
#pragma unroll
  for (int n = 0; n < N; ++n) to[n] = from[n];
}
template <int N> KW_DEVICE void narrow(int (&to)[N], const Wide (&from)[N]) {
  bool fit = true;
#pragma unroll
  for (int n = 0; n < N; ++n) fit = fit & from[n].fits();
  end_unless(fit);
#pragma unroll
  for (int n = 0; n < N; ++n) to[n] = int(from[n].value);
}

#ifndef KW_EXACT
// What a tensor of floats holds of a real, and what a real is of one.
KW_DEVICE float to_memory(real x) { return x; }
KW_DEVICE real from_memory(const float* x) { return __ldg(x); }
KW_DEVICE real from_memory(const bf16* x) { return __uint_as_float(u32(__ldg(&x->bits)) << 16); }
KW_DEVICE real from_memory(const f16* x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(__ldg(&x->bits)));
  return y;
}
// PTX ISA 9.7.9.21, cvt, sm_89 and later: two of e4m3 become two of f16, all of whose values f16 has.
KW_DEVICE u32 to_f16x2(unsigned short two) {
  u32 y;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(two));
  return y;
}
KW_DEVICE real from_memory(const e4m3* x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(static_cast<unsigned short>(to_f16x2(__ldg(&x->bits)))));
  return y;
}
// What was written to memory by this kernel, or the one before.
KW_DEVICE real from_scratch(float x) { return x; }
KW_DEVICE real from_scratch(bf16 x) { return __uint_as_float(u32(x.bits) << 16); }
KW_DEVICE real from_scratch(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
// Of two elements in a word the low one (0) or the high one (1).
KW_DEVICE real from_word(bf16, u32 word, int high) {
  return __uint_as_float(high ? word & 0xffff0000u : word << 16);
}
KW_DEVICE real from_word(f16, u32 word, int high) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(static_cast<unsigned short>(word >> 16 * high)));
  return y;
}
#endif
}  // namespace kw
#ifdef KW_EXACT
#include "exact/real.cuh"
#endif
