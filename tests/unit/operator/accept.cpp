// By how much an output may differ: the rules of operator/family.h.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "operator/sums.h"

namespace kw::spec {
namespace {

Held held(std::vector<double> want) {
  Held out;
  out.want = std::move(want);
  return out;
}

bool right(const Output& output, const Held& of, std::vector<double> got, Dtype type) {
  return accept(output, of, got.data(), 0, type).right;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Accept, takes_infinity_where_no_number_of_the_type_is_as_large) {
  const Output row{"c", "bhij", Rule::row}, sum{"sums", "bhi", Rule::row_sum};
  EXPECT_TRUE(right(row, held({1, 70000}), {1, kInfinity}, Dtype::f16));
  EXPECT_FALSE(right(row, held({1, 70000}), {1, -kInfinity}, Dtype::f16));
  EXPECT_FALSE(right(row, held({1, 70000}), {2, kInfinity}, Dtype::f16));
  EXPECT_FALSE(right(row, held({1, 60000}), {1, kInfinity}, Dtype::f16));
  EXPECT_FALSE(right(row, held({1, 70000}), {1, kInfinity}, Dtype::bf16));
  EXPECT_TRUE(right(sum, held({3.86e38}), {kInfinity}, Dtype::bf16));
  EXPECT_FALSE(right(sum, held({3.2e38}), {kInfinity}, Dtype::bf16));
}

TEST(Accept, takes_of_a_sum_what_its_terms_may_be_off_by_and_its_own_rounding) {
  const Output of_slopes{"d_slopes", "h", Rule::sum};
  Held sums = held({100, -3});
  sums.allowed = {0.5, 0.25};
  sums.rounding = 0.01;
  EXPECT_TRUE(right(of_slopes, sums, {101.4, -3}, Dtype::bf16));
  EXPECT_FALSE(right(of_slopes, sums, {101.6, -3}, Dtype::bf16));
  EXPECT_FALSE(right(of_slopes, sums, {100, -3.3}, Dtype::bf16));
}

// Two batch entries, four heads of which two share a key head.
TEST(Sums, are_complete_with_the_last_head_that_has_a_share) {
  const auto blocks = [](const char* axes) {
    std::string out;
    for (const HeadAt& at : heads_of(2, 4, 2, [](int64_t h) { return h % 2 == 1; })) {
      const Block block = block_of({"x", axes, Rule::sum}, at);
      out += std::to_string(block.number) + (block.complete ? ". " : " ");
    }
    return out;
  };
  EXPECT_EQ(blocks("bhj"), "0. 1. 2. 3. 4. 5. 6. 7. ");
  EXPECT_EQ(blocks("bgjc"), "0 0. 1 1. 2 2. 3 3. ");
  EXPECT_EQ(blocks("h"), "0 1 2 3 0. 1. 2. 3. ");
  EXPECT_EQ(blocks("bj"), "0 0 0 0. 1 1 1 1. ");
  EXPECT_EQ(blocks("j"), "0 0 0 0 0 0 0 0. ");

  Sums<Held> sums;
  const Output of_keys{"d_bias", "bj", Rule::sum};
  Held share = held({1, 10});
  share.allowed = {0.5, 0.25};
  int complete = 0;
  for (const HeadAt& at : heads_of(2, 4, 2, [](int64_t h) { return h % 2 == 1; })) {
    const auto sum = sums.add(0, block_of(of_keys, at), share, add_share);
    if (!sum) continue;
    ++complete;
    EXPECT_EQ(sum->want, (std::vector<double>{4, 40}));
    EXPECT_EQ(sum->allowed, (std::vector<double>{2, 1}));
  }
  EXPECT_EQ(complete, 2);
}

}  // namespace
}  // namespace kw::spec
