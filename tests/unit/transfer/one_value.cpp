// What is proved to be one value in every tile, held against tiles: every element of some.
#include "transfer/masks/one_value.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "transfer_evaluate.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

tl::ExprPtr parsed(const std::string& text) {
  Diagnostics d;
  tl::ExprPtr e = tl::parse_expr(text, d);
  if (!e) throw std::runtime_error(render(d));
  return e;
}

// The mask's tile in a kernel of the corpus.
bool is_one(const std::string& target, const std::string& text) {
  const tl::Program kernel = kernel_of(target);
  Diagnostics d;
  const auto facts = find_facts(kernel, d);
  if (!facts) throw std::runtime_error(render(d));
  bool asked = false, one = false;
  tl::walk(kernel.body, [&](const tl::Stmt& s) {
    if (s.op != tl::Op::map_at) return;
    with_tile_values(kernel, *facts, s, [&](const TileValues& values) {
      asked = true;
      one = values.is_one(parsed(text));
    });
  });
  EXPECT_TRUE(asked);
  return one;
}

// 64 rows and 128 keys, at multiples of as many.
TEST(OneValue, of_hoppers_tile_blocks_of_its_size_or_a_multiple_are) {
  for (const char* text :
       {"i // 64", "i // 128", "j // 128", "j // 256", "j >> 7", "i // 64 * 64 + 64",
        "table[c.b, i // 128, j // 256]", "i % 512 // 64", "min(N, i // 64)", "i < 64", "256 <= j",
        "j > 127", "i // 64 < j // 128", "where(i // 64 == j // 128, i // 192, N)",
        "(j + M * 128) // 128", "(i + 192) // 64", "j % 1024 < 512", "-(i // 64)",
        "(128 - i - 1) // 64"})
    EXPECT_TRUE(is_one("sm_90a", text)) << text;
  const std::vector<const char*> others = {"i",
                                           "j",
                                           "i // 32",
                                           "j // 64",
                                           "i // 96",
                                           "j // 192",
                                           "j >> 6",
                                           "(i + 1) // 64",
                                           "(j + M) // 128",
                                           "i % 64",
                                           "i < 63",
                                           "j <= 128",
                                           "j < N",
                                           "j <= i",
                                           "i // 64 < j // 64",
                                           "i // 64 == j",
                                           "i % 96 // 32",
                                           "(i + j) // 64",
                                           "min(i, 64)",
                                           "i // N",
                                           "i % 96 < 64",
                                           "table[c.b, i // 128, j]",
                                           "i // 64 == 0 and j == 3"};
  for (const char* text : others) EXPECT_FALSE(is_one("sm_90a", text)) << text;
}

TEST(OneValue, of_amperes_tile_of_128_rows_and_64_keys_others_are) {
  EXPECT_TRUE(is_one("sm_80", "i // 128"));
  EXPECT_FALSE(is_one("sm_80", "i // 64"));
  EXPECT_TRUE(is_one("sm_80", "j // 64"));
  EXPECT_TRUE(is_one("sm_80", "j < 64"));
}

// i is a multiple of 128 there, and i % 192 one of 64 alone.
TEST(OneValue, a_remainder_is_aligned_as_its_divisor_is) {
  const tl::Scope none;
  const TileValues values({64, 128}, {128, 128}, none);
  EXPECT_TRUE(values.is_one(parsed("i % 192 // 64")));
  EXPECT_FALSE(values.is_one(parsed("(i % 192 + 1) // 128")));
  EXPECT_TRUE(values.is_one(parsed("(i % 256 + 1) // 128")));
}

// Expressions of i and j: blocks, remainders and bounds, most of them near what tiles have.
class Expressions {
 public:
  explicit Expressions(uint64_t seed) : random_(seed) {}
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }

  std::string integer(int depth) {
    if (depth == 0) {
      const char* leaves[] = {"i", "j", "i", "j", "x", "x * 64"};
      return below(5) ? leaves[below(6)] : fmt::format("{}", constant());
    }
    const std::string a = "(" + integer(depth - 1) + ")";
    switch (below(7)) {
      case 0:
        return fmt::format("({} {} {}) // {}", below(2) ? "i" : "j", below(2) ? "+" : "-",
                           constant(), constant());
      case 1:
        return fmt::format("{} // {}", a, constant());
      case 2:
        return fmt::format("{} % {}", a, constant());
      case 3:
        return fmt::format("{} * {}", a, below(7) - 3);
      case 4:
        return fmt::format("{} {} ({})", a, below(2) ? "+" : "-", integer(depth - 1));
      case 5:
        return fmt::format("{} {} {}", a, below(2) ? "+" : "-", below(3) ? constant() : below(70));
      default:
        return fmt::format("min({}, {})", a, integer(depth - 1));
    }
  }

  std::string any() {
    const char* comparisons[] = {"<", "<=", ">", ">=", "==", "!="};
    if (below(2)) return integer(static_cast<int>(1 + below(3)));
    return fmt::format("{} {} {}", integer(static_cast<int>(below(3))), comparisons[below(6)],
                       integer(static_cast<int>(below(2))));
  }

 private:
  std::mt19937_64 random_;
  int64_t constant() {
    const int64_t constants[] = {1, 16, 32, 48, 63, 64, 64, 96, 127, 128, 128, 192, 256, 512};
    return constants[below(14)];
  }
};

TEST(OneValue, holds_for_every_element_of_a_tile) {
  const char* cases = std::getenv("KW_CASES");
  Expressions random(5);
  const tl::Scope none;
  constexpr Axis kRows[] = {{64, 64}, {128, 128}, {64, 128}},
                 kKeys[] = {{128, 128}, {112, 112}, {64, 64}};
  const int64_t count = cases ? std::atoll(cases) : 4000;
  int64_t proved = 0;
  for (int64_t n = count; n-- > 0;) {
    const std::string text = random.any();
    const tl::ExprPtr e = parsed(text);
    const Axis rows = kRows[random.below(3)], keys = kKeys[random.below(3)];
    const bool one = TileValues(rows, keys, none).is_one(e);
    bool alike = true;
    for (int tile = 0; tile < 6 && alike; ++tile) {
      Values v;
      v.names["x"] = double(random.below(9) - 4);
      const int64_t i0 = random.below(9) * rows.divisor, j0 = random.below(9) * keys.divisor;
      std::set<double> seen;
      for (const int64_t r : {0, 1, 31, 32, 62, 63, 64, 126, 127})
        for (int64_t c = 0; c < keys.count && r < rows.count; ++c) {
          v.names["i"] = double(i0 + r), v.names["j"] = double(j0 + c);
          seen.insert(evaluate(e, v));
        }
      alike = seen.size() == 1;
    }
    ASSERT_TRUE(alike || !one) << text << " in tiles of " << rows.count << " by " << keys.count;
    proved += one;
  }
  EXPECT_GT(proved, count / 5);  // it does prove something
}

}  // namespace
}  // namespace kw::transfer
