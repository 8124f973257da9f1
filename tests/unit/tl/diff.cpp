#include "tl/analysis/diff.h"

#include <gtest/gtest.h>

namespace kw::tl {
namespace {

Program parsed(const std::string& text) {
  Diagnostics d;
  std::optional<Program> p = parse(make_source("k.tl", text), d);
  EXPECT_TRUE(p) << render(d);
  return p ? std::move(*p) : Program{};
}

std::string difference(const std::string& from, const std::string& to) {
  return print_diff(parsed(from), parsed(to));
}

TEST(Diff, of_equal_programs_is_empty) {
  EXPECT_EQ(difference("param D = 64\n", "param D = 64\n"), "");
}

TEST(Diff, shows_changes_under_the_blocks_they_stand_in) {
  EXPECT_EQ(difference("param D = 64\n"
                       "kernel k, threads 128:\n"
                       "    fence_async\n"
                       "    if a:\n"
                       "        fill s = 0.0\n"
                       "        tma_store_wait\n"
                       "    fence_async\n",
                       "param D = 64\n"
                       "kernel k, threads 128:\n"
                       "    fence_async\n"
                       "    let x = 1\n"
                       "    if a and x == 1:\n"
                       "        fill s = 1.0\n"
                       "        tma_store_wait\n"),
            "  kernel k, threads 128:\n"
            "+     let x = 1\n"
            "-     if a:\n"
            "+     if a and x == 1:\n"
            "-         fill s = 0.0\n"
            "+         fill s = 1.0\n"
            "-     fence_async\n");
}

TEST(Diff, pairs_a_statement_with_the_most_similar_one) {
  const Program from = parsed("kernel k, threads 1:\n    let a = b + 1\n    let c = d * 2\n");
  const Program to = parsed("kernel k, threads 1:\n    let c = d * 3\n");
  const std::vector<Pair> pairs = align(from.body[0].body, to.body[0].body);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].to, nullptr);
  EXPECT_EQ(pairs[1].from, &from.body[0].body[1]);
  EXPECT_EQ(pairs[1].to, &to.body[0].body[0]);
}

TEST(Diff, unlike_statements_are_no_pair_and_maps_of_tiles_are) {
  const Program from =
      parsed("kernel k, threads 1:\n    wait a[0]\n    map s[i, j] = s[i, j] * x\n");
  const Program to = parsed(
      "kernel k, threads 1:\n    fence_async\n    map_at s[i, j] from (a, b) = s[i, j] * x\n");
  const std::vector<Pair> pairs = align(from.body[0].body, to.body[0].body);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_TRUE(pairs[2].from && pairs[2].to);
}

}  // namespace
}  // namespace kw::tl
