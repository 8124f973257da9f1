#include "cute/expr.h"

#include <gtest/gtest.h>

namespace kw::cute {
namespace {

// Names as a kernel declares them: a size, a local int that may be negative, an accumulator.
struct Spelled {
  tl::Scope scope;
  Spelled() {
    tl::Symbol size{.name = "N", .category = tl::Category::size, .type = {tl::Type::integer, ""}};
    size.range = {1, tl::Interval::kFar};
    scope.add(size);
    scope.add({.name = "d", .category = tl::Category::local, .type = {tl::Type::integer, ""}});
    scope.add({.name = "s", .category = tl::Category::accumulator, .type = {tl::Type::tile, ""}});
    scope.add({.name = "t", .category = tl::Category::accumulator, .type = {tl::Type::tile, ""}});
  }
  std::string operator()(const std::string& text, std::string* problem = nullptr) {
    Diagnostics d;
    ExprWriter writer(scope);
    const MapBody map{"s", {"i", "j"}};
    writer.map = &map;
    const std::string out = writer.expr(tl::parse_expr(text, d));
    EXPECT_FALSE(d.has_errors()) << text;
    if (problem)
      *problem = writer.problem;
    else
      EXPECT_EQ(writer.problem, "");
    return out;
  }
};

TEST(CuteExpr, divides_as_c_does_where_nothing_is_negative) {
  Spelled spelled;
  EXPECT_EQ(spelled("N // 4 % 2"), "args.N / 4 % 2");
  EXPECT_EQ(spelled("d // 4"), "tl::floor_div(d, 4)");
  EXPECT_EQ(spelled("d % 4"), "tl::floor_mod(d, 4)");
}

TEST(CuteExpr, shifts_as_c_does_by_known_counts_alone) {
  Spelled spelled;
  EXPECT_EQ(spelled("d >> 3"), "(d >> 3)");
  EXPECT_EQ(spelled("d >> d"), "tl::shift_right(d, d)");
}

TEST(CuteExpr, rounds_sums_of_reals_in_comparisons) {
  Spelled spelled;
  EXPECT_EQ(spelled("where(s[i, j] * 2.0 - 1.0 < 0.0, s[i, j] * 2.0 - 1.0, 0.0)"),
            "tl::rounded_difference(s(vr, vc) * 2.0f, 1.0f) < 0.0f ? s(vr, vc) * 2.0f - 1.0f : "
            "0.0f");
  EXPECT_EQ(spelled("i - j < N"), "i - j < args.N");
}

TEST(CuteExpr, puts_parentheses_where_c_ranks_otherwise) {
  Spelled spelled;
  EXPECT_EQ(spelled("(d & 1) == 1"), "(d & 1) == 1");
  EXPECT_EQ(spelled("N - (d - 1)"), "args.N - (d - 1)");
  EXPECT_EQ(spelled("i < N or j < N and not (d < 1)"), "i < args.N || (j < args.N && !(d < 1))");
}

TEST(CuteExpr, names_the_element_of_the_maps_own_tile_alone) {
  Spelled spelled;
  EXPECT_EQ(spelled("where(j < N, s[i, j], -inf)"), "j < args.N ? s(vr, vc) : tl::minus_infinity");
  std::string problem;
  spelled("t[i, j]", &problem);
  EXPECT_NE(problem, "");
  spelled("nobody + 1", &problem);
  EXPECT_EQ(problem, "unknown name 'nobody'");
}

}  // namespace
}  // namespace kw::cute
