#include "eval/estimate.h"

#include <gtest/gtest.h>

namespace kw {
namespace {

// Of all ways to draw k of n samples, the first `passed` of which pass: how many have one that
// does.
double drawn(int k, int n, int passed) {
  int ways = 0, good = 0;
  for (int set = 0; set < 1 << n; ++set) {
    if (__builtin_popcount(set) != k) continue;
    ++ways;
    good += (set & ((1 << passed) - 1)) != 0;
  }
  return double(good) / ways;
}

TEST(PassAt, is_what_drawing_without_putting_back_gives) {
  for (int n = 1; n <= 8; ++n)
    for (int passed = 0; passed <= n; ++passed)
      for (int k = 1; k <= n; ++k)
        EXPECT_NEAR(*eval::pass_at(k, n, passed), drawn(k, n, passed), 1e-12)
            << k << " of " << n << ", " << passed << " passed";
}

TEST(PassAt, has_no_estimate_from_fewer_samples) {
  EXPECT_FALSE(eval::pass_at(3, 2, 2));
  EXPECT_FALSE(eval::pass_at(0, 2, 2));
}

TEST(PassAt, of_several_tasks_is_their_mean_or_nothing) {
  EXPECT_DOUBLE_EQ(*eval::mean({0.5, 1.0}), 0.75);
  EXPECT_FALSE(eval::mean({0.5, std::nullopt}));
  EXPECT_FALSE(eval::mean({}));
}

}  // namespace
}  // namespace kw
