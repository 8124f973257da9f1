// The small algebra, twice: what a KW_EXACT build computes on the GPU (cuda/kw/exact/real.cuh, here
// as plain C++) against what the executor computes (src/num/small_algebra.h), word by word.
#include <gtest/gtest.h>

#include "num/random.h"
#include "num/small_algebra.h"

#define KW_DEVICE inline
#include "../../../cuda/kw/exact/real.cuh"

namespace kw {
namespace {

using exact::Element;
using exact::SmallAlgebra;

const SmallAlgebra kAlgebra(1);

// Words of all kinds: numbers, zero, one, -1, the infinities, undefined.
std::vector<uint32_t> words() {
  std::vector<uint32_t> out = {0,  0x00010001u, 65266u << 16 | 32632u, 0x00050000u,
                               7u, 0xffffffffu, 0xfffffffeu,           0xfffffffdu};
  const Random random(3, 0);
  for (int n = 0; n < 40; ++n) {
    const uint64_t w = random.word(n);
    out.push_back(
        uint32_t((w >> 32) % SmallAlgebra::kP << 16 | (w & 0xffffffff) % SmallAlgebra::kQ));
  }
  return out;
}

uint32_t host(const Element& e) { return SmallAlgebra::bits(e); }

TEST(SmallAlgebra, is_the_devices_for_every_pair_of_words) {
  for (uint32_t x : words())
    for (uint32_t y : words()) {
      const Element a = SmallAlgebra::of(x), b = SmallAlgebra::of(y);
      const real u = real::of(x), v = real::of(y);
      ASSERT_EQ(host(kAlgebra.add(a, b)), (u + v).bits) << std::hex << x << " + " << y;
      ASSERT_EQ(host(kAlgebra.sub(a, b)), (u - v).bits) << std::hex << x << " - " << y;
      ASSERT_EQ(host(kAlgebra.mul(a, b)), (u * v).bits) << std::hex << x << " * " << y;
      ASSERT_EQ(host(kAlgebra.div(a, b)), (u / v).bits) << std::hex << x << " / " << y;
      ASSERT_EQ(host(kAlgebra.max(a, b)), max(u, v).bits) << std::hex << x << " " << y;
      ASSERT_EQ(host(kAlgebra.min(a, b)), min(u, v).bits) << std::hex << x << " " << y;
      ASSERT_EQ(kAlgebra.less(a, b).holds, u < v) << std::hex << x << " " << y;
      ASSERT_EQ(kAlgebra.equal(a, b).holds, u == v) << std::hex << x << " " << y;
    }
}

TEST(SmallAlgebra, is_the_devices_for_every_function) {
  for (uint32_t x : words()) {
    const Element a = SmallAlgebra::of(x);
    const real u = real::of(x);
    EXPECT_EQ(host(kAlgebra.negate(a)), (-u).bits) << std::hex << x;
    EXPECT_EQ(host(kAlgebra.exp2(a)), exp2(u).bits) << std::hex << x;
    EXPECT_EQ(host(kAlgebra.log2(a)), log2(u).bits) << std::hex << x;
    EXPECT_EQ(host(kAlgebra.reciprocal(a)), reciprocal(u).bits) << std::hex << x;
    EXPECT_EQ(host(kAlgebra.tanh(a)), tanh(u).bits) << std::hex << x;
    EXPECT_EQ(host(kAlgebra.rsqrt(a)), rsqrt(u).bits) << std::hex << x;
  }
}

TEST(SmallAlgebra, reads_inputs_and_constants_as_the_device_does) {
  for (uint32_t word = 0; word < 65536; word += 7)
    ASSERT_EQ(host(kAlgebra.draw(word)), real::stored(word).bits) << word;
  for (int n : {0, 1, -1, 3, 65267, -65268, 1 << 24, -2147483647 - 1})
    EXPECT_EQ(host(kAlgebra.integer(n)), real(n).bits) << n;
  const Random random(4, 0);
  for (int n = 0; n < 4000; ++n) {  // any fp32 number, infinities and NaNs with them
    const float x = __builtin_bit_cast(float, uint32_t(random.word(n)));
    ASSERT_EQ(host(kAlgebra.constant(x)), real(x).bits) << x;
    ASSERT_EQ(host(kAlgebra.draw(uint64_t(SmallAlgebra::fp32(x)))), real(x).bits) << x;
  }
  for (float x : {0.0f, -0.0f, 1.0f, 1e-45f, -1.17549421e-38f, 3.4e38f, 0.127517432f})
    EXPECT_EQ(host(kAlgebra.constant(x)), real(x).bits) << x;
}

TEST(SmallAlgebra, is_a_ring_with_exponentials_and_their_logarithms) {
  for (uint32_t x : words())
    for (uint32_t y : words()) {
      const real u = real::of(x), v = real::of(y);
      if (exact::special(x) || exact::special(y)) continue;
      EXPECT_EQ((u + v) * u, u * u + v * u);
      EXPECT_EQ(exact::first(exp2(u + v).bits), exact::first((exp2(u) * exp2(v)).bits));
      // What a log-sum is: the reference does not matter.
      const real sum = u + v, raised = sum * exp2(v);
      if (exact::first(sum.bits) == 0) continue;
      EXPECT_EQ(exact::second(log2(raised).bits), exact::second((log2(sum) + v).bits));
    }
  EXPECT_EQ(real(0.75f) * real(4), real(3));
  EXPECT_EQ(exp2(real(0)), real(1));
  EXPECT_EQ(exp2(real(-__builtin_inff())), real(0));
}

TEST(SmallAlgebra, multiplies_matrices_as_sums_of_products) {
  const Random random(5, 0);
  std::vector<Element> a(6), b(12), c(8), want;
  for (size_t n = 0; n < 6; ++n) a[n] = kAlgebra.draw(random.word(n) & 0xffff);
  for (size_t n = 0; n < 12; ++n) b[n] = kAlgebra.draw(random.word(20 + n) & 0xffff);
  for (size_t n = 0; n < 8; ++n) c[n] = kAlgebra.draw(random.word(40 + n) & 0xffff);
  for (const bool transposed : {false, true}) {
    std::vector<Element> got = c;
    kAlgebra.add_product(2, 3, 4, a.data(), b.data(), transposed, got.data());
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j) {
        Element sum = c[i * 4 + j];
        for (int k = 0; k < 3; ++k)
          sum =
              kAlgebra.add(sum, kAlgebra.mul(a[i * 3 + k], b[transposed ? j * 3 + k : k * 4 + j]));
        EXPECT_EQ(host(got[i * 4 + j]), host(sum));
      }
  }
}

}  // namespace
}  // namespace kw
