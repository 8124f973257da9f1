#include "num/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace kw {
namespace {

// Every value of the type, by its bits, is its own rounding; and halfway between two neighbours the
// one with the even bits is taken, just beside halfway the nearer one.
template <class Value>
void check_neighbours(Dtype t, Value value, uint16_t last_finite) {
  for (uint16_t bits = 0; bits < last_finite; ++bits) {
    const double low = value(bits), high = value(bits + 1), middle = (low + high) / 2;
    ASSERT_EQ(round_to(t, low), low);
    ASSERT_EQ(round_to(t, middle), bits % 2 ? high : low) << bits;
    ASSERT_EQ(round_to(t, std::nextafter(middle, 0)), low) << bits;
    ASSERT_EQ(round_to(t, std::nextafter(middle, HUGE_VAL)), high) << bits;
    ASSERT_EQ(round_to(t, -middle), bits % 2 ? -high : -low);
  }
}

TEST(Dtype, bf16_rounds_to_nearest_even_over_its_whole_range) {
  check_neighbours(Dtype::bf16, bf16_value, 0x7f7f);
}

TEST(Dtype, f16_rounds_to_nearest_even_over_its_whole_range) {
  check_neighbours(Dtype::f16, f16_value, 0x7bff);
}

TEST(Dtype, e4m3_rounds_to_nearest_even_over_its_whole_range) {
  check_neighbours(
      Dtype::e4m3, [](int bits) { return e4m3_value(static_cast<uint8_t>(bits)); }, 0x7e);
}

// Of what PyTorch makes of all codes, and of the numbers halfway between two and just beside:
// test_e4m3.py holds the table against PyTorch.
TEST(Dtype, e4m3_is_pytorchs_in_all_codes_and_ties) {
  struct Row {
    int code;
    float value;
    int below, halfway, above;  // codes of the numbers between this value and the next
  };
  const Row rows[] = {
#include "e4m3_rows.inc"
  };
  ASSERT_EQ(std::size(rows), 127);
  for (const Row& r : rows) {
    const float next = r.code == 0x7e ? 480 : e4m3_value(static_cast<uint8_t>(r.code + 1));
    const float middle = (r.value + next) / 2;
    EXPECT_EQ(e4m3_value(static_cast<uint8_t>(r.code)), r.value) << r.code;
    EXPECT_EQ(e4m3_value(static_cast<uint8_t>(r.code | 0x80)), -r.value) << r.code;
    EXPECT_EQ(e4m3_bits(r.value), r.code);
    EXPECT_EQ(e4m3_bits(-r.value), r.code | 0x80);
    EXPECT_EQ(e4m3_bits(std::nextafter(middle, 0.0f)), r.below) << r.code;
    EXPECT_EQ(e4m3_bits(middle), r.halfway) << r.code;
    EXPECT_EQ(e4m3_bits(-middle), r.halfway | 0x80) << r.code;
    EXPECT_EQ(e4m3_bits(std::nextafter(middle, HUGE_VALF)), r.above) << r.code;
  }
}

TEST(Dtype, e4m3_has_no_infinity) {
  for (double x : {464.01, 1e30, HUGE_VAL, -HUGE_VAL, double{NAN}}) {
    EXPECT_TRUE(std::isnan(round_to(Dtype::e4m3, x))) << x;
    EXPECT_EQ(e4m3_bits(static_cast<float>(x)) & 0x7f, 0x7f) << x;
  }
  EXPECT_EQ(round_to(Dtype::e4m3, 464), 448);
  EXPECT_TRUE(std::isnan(e4m3_value(0x7f)) && std::isnan(e4m3_value(0xff)));
  EXPECT_TRUE(std::signbit(round_to(Dtype::e4m3, -0x1p-11)));
}

TEST(Dtype, overflow_is_infinity_from_half_a_unit_past_the_largest) {
  EXPECT_EQ(round_to(Dtype::f16, 65519.99), 65504);
  EXPECT_EQ(round_to(Dtype::f16, 65520), HUGE_VAL);
  EXPECT_EQ(round_to(Dtype::f16, -65520), -HUGE_VAL);
  EXPECT_EQ(round_to(Dtype::bf16, 3.39e38), bf16_value(0x7f7f));
  EXPECT_EQ(round_to(Dtype::bf16, 3.4e38), HUGE_VAL);
  EXPECT_EQ(round_to(Dtype::bf16, -HUGE_VAL), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(round_to(Dtype::bf16, NAN)));
  EXPECT_TRUE(std::isnan(round_to(Dtype::f16, NAN)));
  EXPECT_TRUE(std::signbit(round_to(Dtype::bf16, -0.0)));
}

TEST(Dtype, fp64_is_not_rounded_twice_through_fp32) {
  // Just above the middle of 1 and 1 + 2^-7, by less than fp32 can see.
  EXPECT_EQ(round_to(Dtype::bf16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(round_to(Dtype::bf16, 1 + 0x1p-8), 1);
}

TEST(Dtype, bits_and_values_agree_for_all_patterns) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float b = bf16_value(bits), h = f16_value(bits);
    if (!std::isnan(b)) {
      ASSERT_EQ(bf16_bits(b), bits);
    }
    if (!std::isnan(h)) {
      ASSERT_EQ(f16_bits(h), bits);
    }
  }
  EXPECT_TRUE(std::isnan(bf16_value(bf16_bits(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Dtype, the_fast_path_agrees_with_the_general_one_on_random_floats) {
  std::mt19937 generator(1);
  for (int n = 0; n < 200000; ++n) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(generator()));
    if (std::isnan(x)) continue;
    ASSERT_EQ(bf16_round(x), round_to(Dtype::bf16, x)) << x;
    ASSERT_EQ(f16_value(f16_bits(x)), round_to(Dtype::f16, x)) << x;
  }
}

TEST(Dtype, integers_truncate_toward_zero_and_clamp) {
  EXPECT_EQ(round_to(Dtype::i32, -2.9), -2);
  EXPECT_EQ(round_to(Dtype::i32, 1e12), 2147483647);
  EXPECT_EQ(round_to(Dtype::u8, -1), 0);
  EXPECT_EQ(round_to(Dtype::boolean, 0.5), 1);
}

TEST(Dtype, names_go_both_ways) {
  for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::i64,
                  Dtype::i32, Dtype::u32, Dtype::u8, Dtype::boolean})
    EXPECT_EQ(dtype_named(name(t)), t);
  EXPECT_FALSE(dtype_named("float"));
}

}  // namespace
}  // namespace kw
