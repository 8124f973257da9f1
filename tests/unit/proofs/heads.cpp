// For which numbers of heads something is proved: any, as many a group as the form has, or its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "made.h"

namespace kw::proofs {
namespace {

const char* const kSlopes = "argument slopes f32[H]\nscore s + slopes[h] * (j - i)\nkeep j <= i\n";

// As many key heads as query heads.
std::string alone() { return std::string("alone\n") + kCausal; }

// "" for any, "H == G * 4", or "H == 32 and G == 8".
std::string heads_of(const Made& made) {
  const Report r = proved(made);
  EXPECT_TRUE(r.complete()) << print(r);
  std::string out;
  for (const Limit& l : r.limits) out += (out.empty() ? "" : " and ") + print(l);
  return out;
}

TEST(Heads, of_what_the_rules_make_are_any) {
  EXPECT_EQ(heads_of(made_of(kSlopes)), "");
  EXPECT_EQ(heads_of(made_of(alone())), "");
}

// What is right where four heads share a key head is limited to launches where they do.
TEST(Heads, of_a_group_that_are_counted_by_a_number_are_a_condition) {
  EXPECT_EQ(heads_of(with(made_of(kSlopes), "c.h // (H // G)", "c.h // 4")), "H == G * 4");
  EXPECT_EQ(heads_of(with(made_of(alone()), "c.h // (H // G)", "c.h")), "H == G");
  EXPECT_EQ(heads_of(with(made_of(alone()), "-> lse[c.b, c.h,", "-> lse[c.b, c.h // (H // G),")),
            "H == G");
}

TEST(Heads, that_are_told_by_their_number_are_the_forms_own) {
  const std::string own = "H == 32 and G == 8";
  EXPECT_EQ(heads_of(with(made_of(kSlopes), "slopes[c.h]", "slopes[c.h % 32]")), own);
  EXPECT_EQ(heads_of(with(made_of(kSlopes), "slopes[c.h]", "slopes[c.h + H - 32]")), own);
  EXPECT_EQ(heads_of(with(made_of(kSlopes), "q[c.b, c.h,", "q[c.b, min(c.h, 31),")), own);
}

// The length of a table is one number in all cases, as heads are: S - 64 is no 0.
TEST(Heads, and_lengths_of_tables_are_no_plain_numbers) {
  const Made made =
      made_of("argument table f32[H, R]\nscore s + table[h, min(max(j - i, -16), 16) + 16]\n");
  EXPECT_EQ(heads_of(made), "");
  const Report r = proved(with(made, "v[c.b, g,", "v[c.b + R - 64, g,"));
  EXPECT_NE(r.first(Answer::unknown), nullptr) << print(r);
}

TEST(Heads, of_the_form_refute_what_is_wrong_for_them) {
  const Report r = proved(with(made_of(kSlopes), "c.h // (H // G)", "c.h // 8"));
  EXPECT_FALSE(r.complete()) << print(r);
}

// A turn's number, of a head and a block of queries, fits 32 bits.
TEST(Heads, of_gradients_are_any_up_to_a_number_a_group) {
  EXPECT_EQ(heads_of(made_of(std::string(kCausal) + "gradients\n")), "H <= G * 1024");
}

// A block of keys of such heads has one turn for each of its blocks of queries.
TEST(Heads, of_gradients_that_share_nothing_are_as_many_as_those_of_keys) {
  const Made made = made_of(alone() + "gradients\n");
  EXPECT_EQ(heads_of(made), "H == G");
  EXPECT_EQ(heads_of(with(made, "let h = c.g", "let h = G - 1 - c.g")), "H == 32 and G == 32");
  const char* const kEdits[][2] = {
      {"advance(queries.count - 1, true)", "advance(queries.count - 2, true)"},
      {"range_down_rolled(queries.count - 2, 0)", "range_down_rolled(queries.count - 3, 0)"},
      {"range_down_rolled(queries.count - 2, 0)", "range_down_rolled(queries.count - 2, 1)"},
      {"let m = queries.first + x", "let m = queries.first + max(0, x - 40)"}};
  for (const auto& [from, to] : kEdits) EXPECT_FALSE(proved(with(made, from, to)).complete()) << to;
}

}  // namespace
}  // namespace kw::proofs
