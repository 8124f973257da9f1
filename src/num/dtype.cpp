#include "num/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace kw {
namespace {

struct Row {
  Dtype type;
  std::string_view name;
  size_t bytes;
  bool is_float;
};

constexpr std::array<Row, 10> kRows = {{{Dtype::f64, "f64", 8, true},
                                        {Dtype::f32, "f32", 4, true},
                                        {Dtype::f16, "f16", 2, true},
                                        {Dtype::bf16, "bf16", 2, true},
                                        {Dtype::e4m3, "e4m3", 1, true},
                                        {Dtype::i64, "i64", 8, false},
                                        {Dtype::i32, "i32", 4, false},
                                        {Dtype::u32, "u32", 4, false},
                                        {Dtype::u8, "u8", 1, false},
                                        {Dtype::boolean, "bool", 1, false}}};

const Row& row(Dtype t) { return kRows[static_cast<size_t>(t)]; }

constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

// Rounds to `stored` mantissa bits with smallest normal exponent `min_exponent`, largest finite
// value `max`. In the normal range the fp64 pattern is rounded as an integer: a carry out of the
// mantissa raises the exponent, which is what rounding up does. Below it, every value is a multiple
// of one unit, and adding a number whose own last place is that unit lets the processor round.
template <int stored, int min_exponent>
double round_binary(double x, double max) {
  constexpr int drop = 52 - stored;
  constexpr double smallest = power_of_two(min_exponent);
  constexpr double magic = 1.5 * power_of_two(min_exponent + drop);
  if (!(std::fabs(x) >= smallest)) {
    if (x != x) return x;
    volatile double shifted = std::fabs(x) + magic;
    return std::copysign(shifted - magic, x);
  }
  uint64_t bits = std::bit_cast<uint64_t>(x);
  if (std::isinf(x)) return x;
  bits += (uint64_t{1} << (drop - 1)) - 1 + ((bits >> drop) & 1);
  bits &= ~((uint64_t{1} << drop) - 1);
  const double rounded = std::bit_cast<double>(bits);
  return std::fabs(rounded) > max ? std::copysign(HUGE_VAL, x) : rounded;
}

double to_integer(double x, double low, double high) {
  if (x != x) return 0;
  return std::trunc(std::fmin(std::fmax(x, low), high));
}

}  // namespace

std::string_view name(Dtype t) { return row(t).name; }
size_t bytes(Dtype t) { return row(t).bytes; }
bool is_float(Dtype t) { return row(t).is_float; }

std::optional<Dtype> dtype_named(std::string_view name) {
  for (const Row& r : kRows)
    if (r.name == name) return r.type;
  return std::nullopt;
}

double round_to_bf16(double x) { return round_binary<7, -126>(x, 0x1.fep127); }

double round_to_f16(double x) { return round_binary<10, -14>(x, 65504.0); }

double round_to_e4m3(double x) {
  const double rounded = round_binary<3, -6>(x, 448.0);
  return std::isinf(rounded) ? std::numeric_limits<double>::quiet_NaN() : rounded;
}

double round_to(Dtype t, double x) {
  switch (t) {
    case Dtype::f64:
      return x;
    case Dtype::f32:
      return round_to_f32(x);
    case Dtype::f16:
      return round_to_f16(x);
    case Dtype::bf16:
      return round_to_bf16(x);
    case Dtype::e4m3:
      return round_to_e4m3(x);
    case Dtype::i64:
      return to_integer(x, -0x1p63, 0x1p63);
    case Dtype::i32:
      return to_integer(x, -2147483648.0, 2147483647.0);
    case Dtype::u32:
      return to_integer(x, 0, 4294967295.0);
    case Dtype::u8:
      return to_integer(x, 0, 255);
    case Dtype::boolean:
      return x != 0;
  }
  return x;
}

uint16_t f16_bits(float x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (x != x) return sign | 0x7e00;
  const double r = std::fabs(round_to_f16(x));
  if (std::isinf(r)) return sign | 0x7c00;
  if (r < 0x1p-14) return sign | static_cast<uint16_t>(r * 0x1p24);  // subnormal: units of 2^-24
  int exponent = 0;
  const double fraction = std::frexp(r, &exponent);  // in [0.5, 1)
  return sign | static_cast<uint16_t>((exponent + 14) << 10) |
         static_cast<uint16_t>((fraction * 2 - 1) * 1024);
}

float f16_value(uint16_t bits) {
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return fraction ? std::numeric_limits<float>::quiet_NaN() : sign * HUGE_VALF;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

uint8_t e4m3_bits(float x) {
  const uint8_t sign = std::signbit(x) ? 0x80 : 0;
  const double r = std::fabs(round_to_e4m3(x));
  if (r != r) return sign | 0x7f;
  if (r < 0x1p-6) return sign | static_cast<uint8_t>(r * 0x1p9);  // subnormal: units of 2^-9
  int exponent = 0;
  const double fraction = std::frexp(r, &exponent);  // in [0.5, 1)
  return sign | static_cast<uint8_t>((exponent + 6) << 3) |
         static_cast<uint8_t>((fraction * 2 - 1) * 8);
}

float e4m3_value(uint8_t bits) {
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  const int exponent = (bits >> 3) & 15, fraction = bits & 7;
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -9);
  return sign * std::ldexp(static_cast<float>(fraction + 8), exponent - 10);
}

double half_ulp(Dtype t) {
  switch (t) {
    case Dtype::f64:
      return 0x1p-53;
    case Dtype::f32:
      return 0x1p-24;
    case Dtype::f16:
      return 0x1p-11;
    case Dtype::bf16:
      return 0x1p-8;
    case Dtype::e4m3:
      return 0x1p-4;
    default:
      return 0;
  }
}

}  // namespace kw
