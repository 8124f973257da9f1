// Element types and their rounding. Rounding to every type lives here and nowhere else.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kw {

enum class Dtype { f64, f32, f16, bf16, i64, i32, u32, u8, boolean };

std::string_view name(Dtype t);  // "bf16", "f32", "i32", "bool"
std::optional<Dtype> dtype_named(std::string_view name);
size_t bytes(Dtype t);
bool is_float(Dtype t);

// The nearest value of t to x, ties to even; overflow gives infinity; NaN stays NaN. For integer
// types the value is truncated toward zero.
double round_to(Dtype t, double x);

// Bits of a value already rounded, and back.
uint16_t bf16_bits(float x);
float bf16_value(uint16_t bits);
uint16_t f16_bits(float x);
float f16_value(uint16_t bits);

// Half a unit in the last place, relative: 2^-9 for bf16, 2^-12 for f16, 2^-25 for f32.
double half_ulp(Dtype t);

}  // namespace kw
