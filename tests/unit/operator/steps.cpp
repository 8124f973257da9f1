// Step functions of an integer, as sums of conditions.
#include "operator/expr/steps.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kw::spec {
namespace {

const ExprPtr i = leaf(Kind::index, Type::integer, "i"), j = leaf(Kind::index, Type::integer, "j");
const ExprPtr far = unary("abs", binary("-", j, i));

double at(const ExprPtr& e, int64_t row, int64_t key) {
  Scope scope;
  scope.indices = {{"i", row}, {"j", key}};
  return evaluate(e, scope);
}

std::optional<double> bucket(int64_t n) {
  const double x = std::trunc(std::log(double(n) / 8) / std::log(16.0) * 8);
  return n < 0 || !std::isfinite(x) ? std::nullopt : std::optional(x);
}

TEST(Steps, are_the_function_wherever_it_has_a_value) {
  const ExprPtr steps = steps_of(far, bucket);
  ASSERT_TRUE(steps);
  for (int64_t n = 1; n < 3000; ++n) {
    EXPECT_EQ(at(steps, 0, n), *bucket(n)) << n;
    EXPECT_EQ(at(steps, n, 0), *bucket(n)) << n;
  }
  EXPECT_EQ(at(steps, 0, 0), *bucket(1));  // as at the nearest that has one
}

TEST(Steps, may_fall_and_may_be_by_more_than_one) {
  const auto falling = [](int64_t n) -> std::optional<double> {
    return n > 0 ? std::nullopt : std::optional(std::floor(std::sqrt(double(-n))) * 3 - 5);
  };
  const ExprPtr n = binary("min", binary("-", j, i), integer(0));
  const ExprPtr steps = clamped_steps(
      "min", steps_of(n, [&](int64_t x) { return x < -900 ? std::optional(85.0) : falling(x); }),
      40);
  ASSERT_TRUE(steps);
  for (int64_t d = 0; d < 1200; ++d) {
    const double want = std::min(40.0, d > 900 ? 85 : *falling(-d));
    EXPECT_EQ(at(steps, d, 0), want) << d;
    EXPECT_EQ(at(steps, 0, d), -5);
  }
}

TEST(Steps, are_cut_where_a_bound_clamps_them) {
  const ExprPtr sum = binary("+", steps_of(far, bucket), integer(8));
  const ExprPtr above = binary("min", sum, integer(15)), both = binary("max", above, integer(10));
  const ExprPtr nothing = binary("min", sum, integer(-100));
  for (int64_t n = 1; n < 3000; ++n) {
    const double x = 8 + *bucket(n);
    EXPECT_EQ(at(above, 0, n), std::min(x, 15.0)) << n;
    EXPECT_EQ(at(both, 0, n), std::max(std::min(x, 15.0), 10.0)) << n;
  }
  EXPECT_EQ(print(nothing), "-100");
  EXPECT_LT(print(both).size(), print(above).size());
  EXPECT_EQ(print(binary("min", binary("+", sum, i), integer(3))).substr(0, 3), "min");
}

TEST(Steps, that_a_condition_decides_are_no_steps) {
  const ExprPtr sum = binary("min", binary("+", steps_of(far, bucket), integer(8)), integer(15));
  for (const ExprPtr& close : {binary("<", far, integer(8)), binary("<", integer(20), far),
                               binary("<=", far, integer(46)), binary("<", i, integer(8))}) {
    const ExprPtr chosen = where(close, sum, binary("+", sum, integer(1)));
    for (int64_t n = 1; n < 300; ++n) {
      const double x = std::min(8 + *bucket(n), 15.0);
      EXPECT_EQ(at(chosen, n, 0), x + (at(close, n, 0) ? 0 : 1)) << print(close) << n;
    }
  }
  const ExprPtr small = where(binary("<", far, integer(8)), far, sum);
  EXPECT_EQ(print(small).find("where(4 < "), std::string::npos) << print(small);
}

TEST(Steps, are_not_made_of_what_goes_up_and_down_or_never_ends) {
  EXPECT_FALSE(steps_of(i, [](int64_t n) -> std::optional<double> { return double(n % 7); }));
  EXPECT_FALSE(steps_of(i, [](int64_t n) -> std::optional<double> { return double(n / 3); }));
  EXPECT_FALSE(steps_of(i, [](int64_t) -> std::optional<double> { return std::nullopt; }));
}

}  // namespace
}  // namespace kw::spec
