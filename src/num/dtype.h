// Element types and their rounding. Rounding to every type lives here and nowhere else.
//
// All of it is IEEE 754 round-to-nearest, ties to even, with subnormals and overflow to infinity;
// but e4m3, which has no infinity: overflow gives its NaN, as PyTorch's conversion does. The
// functions that an executor calls once per element are inline.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kw {

enum class Dtype { f64, f32, f16, bf16, e4m3, i64, i32, u32, u8, boolean };

std::string_view name(Dtype t);  // "bf16", "f32", "i32", "bool"
std::optional<Dtype> dtype_named(std::string_view name);
size_t bytes(Dtype t);
bool is_float(Dtype t);

// The nearest value of t to x, ties to even; overflow gives infinity; NaN stays NaN. For integer
// types the value is truncated toward zero and clamped to the type's range (NaN gives 0); for
// boolean it is 0 or 1.
double round_to(Dtype t, double x);

// Straight from fp64, without rounding twice on the way through fp32.
double round_to_bf16(double x);
double round_to_f16(double x);
double round_to_e4m3(double x);
inline double round_to_f32(double x) { return static_cast<float>(x); }

// The bits of x rounded to bf16: the upper half of the fp32 pattern after adding half a unit, less
// one where the last kept bit is even. A NaN keeps its upper bits and stays a NaN.
inline uint16_t bf16_bits(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float bf16_value(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
inline float bf16_round(float x) { return bf16_value(bf16_bits(x)); }

uint16_t f16_bits(float x);
float f16_value(uint16_t bits);

// FP8 with four bits of exponent and three of mantissa, torch.float8_e4m3fn (Open Compute Project's
// "OCP 8-bit Floating Point Specification", 2023): up to 448, subnormals are multiples of 2^-9, and
// 0x7f and 0xff are NaN.
uint8_t e4m3_bits(float x);
float e4m3_value(uint8_t bits);

// Half a unit in the last place of 1, the largest relative error of one rounding: 2^-8 for bf16
// (8 significant bits), 2^-11 for f16, 2^-24 for f32, 2^-4 for e4m3. Zero for integers.
double half_ulp(Dtype t);

}  // namespace kw
