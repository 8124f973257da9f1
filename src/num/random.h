// Test inputs from a seed: one generator, written here and in
// python/kernelwright/capture/random.py, bit for bit alike.
//
// It is counter based: element n of a stream depends on (seed, stream, n) alone, so any part of a
// large tensor can be made without the rest, in any order. The words are SplitMix64's (Steele, Lea,
// Flood, OOPSLA 2014). Everything up to the final rounding is integer arithmetic: a normal value is
// the centred sum of twelve 16-bit uniforms over 2^16, a dyadic rational that fp32 holds exactly,
// so no two machines can differ.
#pragma once
#include <cstdint>

#include "num/tensor.h"

namespace kw {

class Random {
 public:
  Random(uint64_t seed, uint64_t stream);

  uint64_t word(uint64_t n) const { return mix(base_ + n * kGolden); }

  // Approximately standard normal: mean 0, variance 1 - 2^-32, within +-6. Element n uses the
  // words 3n .. 3n+2.
  float normal(uint64_t n) const {
    constexpr uint64_t kLow = 0x0000ffff0000ffff;
    uint64_t pairs = 0;  // two sums side by side, each of six uniforms
    for (uint64_t k = 0; k < 3; ++k) {
      const uint64_t w = word(3 * n + k);
      pairs += (w & kLow) + ((w >> 16) & kLow);
    }
    const int32_t sum = static_cast<int32_t>((pairs & 0xffffffff) + (pairs >> 32));
    return static_cast<float>(sum - 6 * 65535) * 0x1p-16f;
  }

  // In [0, 1), a multiple of 2^-24.
  float uniform(uint64_t n) const { return static_cast<float>(word(n) >> 40) * 0x1p-24f; }

  // In [low, high], both included; high - low must be below 2^32 - 1.
  int64_t integer(uint64_t n, int64_t low, int64_t high) const {
    const uint64_t span = static_cast<uint64_t>(high - low) + 1;
    return low + static_cast<int64_t>(((word(n) >> 32) * span) >> 32);
  }

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t base_;
};

// How an argument's elements are drawn. Captures store this, never the values.
struct Draw {
  enum class Kind { normal, uniform, integer, constant } kind = Kind::normal;
  uint64_t stream = 0;
  double scale = 1;           // normal and uniform: multiplied in fp64 before rounding to the type
  int64_t low = 0, high = 0;  // integer
  double value = 0;           // constant
};

// A drawn number in its type. What is beyond the largest of e4m3, which has no infinity, becomes
// that.
double drawn(Dtype t, double x);

// Places along one dimension: of all others nobody will look at the elements, which stay 0.
struct Slices {
  size_t dim = 0;
  std::vector<int64_t> at;
};

// An element is the same whatever else is drawn.
Tensor draw(const Draw& how, uint64_t seed, Dtype dtype, std::vector<int64_t> shape,
            const std::optional<Slices>& only = std::nullopt);

}  // namespace kw
