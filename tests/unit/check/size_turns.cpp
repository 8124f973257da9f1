// Where a program's integers turn: the sizes at which they do, and what is made of them.
#include "check/size_turns.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "check/program_numbers.h"
#include "check/turning_points.h"
#include "hand_captures.h"
#include "with_heads.h"

namespace kw::check {
namespace {

const char* const kSteps = "let steps = ceil_div(K, BK)";

spec::Form product() { return test::with_sizes(transfer::form_of("product\nvalue s\n")); }

std::string text() { return tl::print(transfer::start_of(product(), "sm_90a").kernel); }

// The product's kernel with another number of steps, and something before it.
tl::Program with_steps(const std::string& steps, const std::string& before = "") {
  std::string all = text();
  const size_t at = all.find(kSteps);
  EXPECT_NE(at, std::string::npos) << all;
  all.replace(at, std::string(kSteps).size(), fmt::format("let steps = {}", steps));
  if (!before.empty()) all.insert(all.rfind('\n', at) + 1, before);
  Diagnostics d;
  const auto program = tl::parse(make_source("edited", all), d);
  EXPECT_TRUE(program) << render(d);
  return program.value_or(tl::Program{});
}

// Where K alone turns, which it does nowhere in the kernel.
std::set<int64_t> columns(const tl::Program& program) {
  std::set<int64_t> out;
  for (const SizeTurn& turn : numbers_of(program).turns)
    if (turn.grown.size() == 1 && turn.grown.count("K")) out.insert(turn.at);
  return out;
}

TEST(SizeTurns, are_found_whatever_the_number_is_spelled_by) {
  EXPECT_TRUE(columns(with_steps("ceil_div(K, BK)")).empty());
  for (const auto& [steps, at] : std::vector<std::pair<std::string, int64_t>>{
           {"min(ceil_div(K, BK), 1 << 8)", 16385},
           {"ceil_div(K, BK) - (ceil_div(K, BK) >> 8)", 16321},
           {"ceil_div(K, BK) - (K >> 14)", 16384},
           {"ceil_div(K, BK) - where(K > 1 << 14, 1, 0)", 16385},
           {"ceil_div(K, BK) - K * K // 200000000", 14143},
           {"ceil_div(K, BK) - where(K * 2 > 32768, 1, 0)", 16385},
           {"ceil_div(K, BK) - where(K - 16384 > 0, 1, 0)", 16385},
           {"ceil_div(K, BK) - where(K // 128 // 128 > 0, 1, 0)", 16384},
           {"ceil_div(K, BK) - (K + 5) // 16389", 16384},
           {"ceil_div(K, BK) - where((K & 16384) != 0, 1, 0)", 16384},
           {"ceil_div(K, BK) - where((K & 16383) != K, 1, 0)", 16384},
           {"ceil_div(K, BK) - where((K ^ 16384) != K + 16384, 1, 0)", 16384},
           {"ceil_div(K, BK) - where(K % 20000 != K, 1, 0)", 20000},
           {"ceil_div(K, BK) - where(K == 17000, 1, 0)", 17000},
           {"ceil_div(K, BK) - where(abs(K - 20000) < 5, 1, 0)", 20000},
           {"ceil_div(K, BK) - where((K * 3 - 60000) * (60300 - K * 3) > 0, 1, 0)", 20000},
           {"ceil_div(K, BK) - where(f32(K) * 0.001 > 20.25, 1, 0)", 20251},
           {"ceil_div(K, BK) - ceil_div(ceil_div(K, 128) - 1, 1024) // 2", 131201},
           {"min(ceil_div(K, BK), BM * 2)", 16385}})
    EXPECT_TRUE(columns(with_steps(steps)).count(at)) << steps;
}

TEST(SizeTurns, go_through_names_and_functions) {
  EXPECT_TRUE(
      columns(with_steps("min(ceil_div(K, BK), most)", "    let few = 1 << 4, most = few * few\n"))
          .count(16385));
  std::string all = text();
  all.replace(all.find(kSteps), std::string(kSteps).size(),
              "let steps = cut(ceil_div(K, BK), 1 << 8)");
  all.insert(all.find("kernel gemm"),
             "def cut(n: index, most: index) -> index:\n    let out = min(n, most)\n"
             "    return out\n");
  Diagnostics d;
  const auto program = tl::parse(make_source("edited", all), d);
  ASSERT_TRUE(program) << render(d);
  EXPECT_TRUE(columns(*program).count(16385));
}

TEST(SizeTurns, of_two_sizes_are_where_both_grow) {
  bool together = false;
  const ProgramNumbers of =
      numbers_of(with_steps("ceil_div(K, BK) - where(M * K > 5000000, 1, 0)"));
  for (const SizeTurn& turn : of.turns)
    together |= turn.grown == std::map<std::string, int64_t>{{"M", 2237}, {"K", 2237}};
  EXPECT_TRUE(together);
}

// What no size decides: a block's number.
TEST(SizeTurns, of_blocks_are_bounds_and_shifts_numbers) {
  std::string all = text();
  const std::string entry = "tma_load_tile a[c.b,";
  all.replace(all.find(entry), entry.size(), "tma_load_tile a[c.b - (c.b >> 9),");
  Diagnostics d;
  const auto program = tl::parse(make_source("edited", all), d);
  ASSERT_TRUE(program) << render(d);
  const ProgramNumbers of = numbers_of(*program);
  EXPECT_TRUE(of.bounds.count(512) && of.numbers.count(512));
  EXPECT_FALSE(of.numbers.count(9)) << "by how many bits is no number";
  EXPECT_TRUE(numbers_of(with_steps("ceil_div(K, BK) - (c_b * c_b) // 90000", "    var c_b = 0\n"))
                  .bounds.count(300));
}

TEST(SizeTurns, have_cases_on_both_sides_and_one_of_the_last_columns_alone) {
  const spec::Capture capture = test::capture_of(product());
  std::vector<int64_t> unreached;
  std::set<int64_t> depths;
  bool ends = false;
  for (const Case& c : cases_beyond(with_steps("ceil_div(K, BK) - K * K // 200000000"), capture,
                                    Options{}, false, unreached)) {
    depths.insert(c.sizes.at("K"));
    ends |= c.planted == Planted::ends && c.sizes.at("K") == 14144;
  }
  for (const int64_t size : {14142, 14143, 14144, 14272}) EXPECT_TRUE(depths.count(size)) << size;
  EXPECT_TRUE(ends);
  EXPECT_TRUE(unreached.empty());
  cases_beyond(with_steps("ceil_div(K, BK) - where(M * N > 1 << 30, 1, 0)"), capture, Options{},
               false, unreached);
  EXPECT_EQ(unreached, std::vector<int64_t>{32769}) << "too much work: named";
}

}  // namespace
}  // namespace kw::check
