#include "operator/expr/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kw::spec {
namespace {

ExprPtr index(const char* name) { return leaf(Kind::index, Type::integer, name); }
ExprPtr size(const char* name) { return leaf(Kind::size, Type::integer, name); }
const ExprPtr b = index("b"), h = index("h"), i = index("i"), j = index("j");
const ExprPtr s = leaf(Kind::score, Type::real, "s");
const ExprPtr prefix = read("prefix", Type::integer, {b});

ExprPtr operator+(ExprPtr x, ExprPtr y) { return binary("+", x, y); }
ExprPtr operator-(ExprPtr x, ExprPtr y) { return binary("-", x, y); }
ExprPtr operator*(ExprPtr x, ExprPtr y) { return binary("*", x, y); }
ExprPtr operator/(ExprPtr x, ExprPtr y) { return binary("/", x, y); }

TEST(Expr, the_ways_to_write_causal_become_one) {
  const std::vector<ExprPtr> ways = {
      binary("<=", j, i),
      binary(">=", i, j),
      unary("not", binary(">", j, i)),
      binary("<", j, i + integer(1)),
      binary("<=", integer(0), i - j),
      binary("<=", j - i, integer(0)),
      binary("<", j - i, integer(1)),
      binary(">", i - j, integer(-1)),
      unary("not", binary("<=", i + integer(1), j)),
      unary("not", where(binary("<=", j, i), boolean(false), boolean(true))),
  };
  for (const ExprPtr& w : ways) EXPECT_EQ(print(w), "j <= i");
}

TEST(Expr, the_ways_to_write_a_window_become_one) {
  for (const ExprPtr& w : {binary("<", i - j, integer(64)), binary(">", j, i - integer(64)),
                           binary("<=", i - j, integer(63)), binary("<=", i - integer(63), j),
                           binary("<", i, j + integer(64))})
    EXPECT_EQ(print(w), "i - 64 < j");
  EXPECT_EQ(print(binary("<=", j - i, size("N") - size("M"))), "j <= i + N - M");
  EXPECT_EQ(print(binary("<", j, integer(5))), "j < 5");
  EXPECT_EQ(print(binary("<=", j, integer(4))), "j < 5");
}

TEST(Expr, and_and_or_do_not_depend_on_order_or_repetition) {
  const ExprPtr x = binary("<=", j, i), y = binary("<", j, prefix);
  EXPECT_EQ(print(binary("or", y, x)), "j <= i or j < prefix[b]");
  EXPECT_TRUE(equal(binary("or", x, binary("or", y, x)), binary("or", y, x)));
  EXPECT_EQ(print(binary("and", x, unary("not", x))), "False");
  EXPECT_EQ(print(binary("and", binary("or", x, y), binary("<", i, integer(3)))),
            "i < 3 and (j <= i or j < prefix[b])");
  EXPECT_EQ(print(unary("not", binary("or", x, y))), "i < j and prefix[b] <= j");
}

TEST(Expr, constants_of_a_product_meet_at_its_end) {
  EXPECT_EQ(print(real(2) * s * real(0.25)), "s * 0.5");
  EXPECT_EQ(print(s / real(4)), "s * 0.25");
  EXPECT_EQ(print(unary("tanh", s / real(50)) * real(50)), "tanh(s * 0.02) * 50");
  EXPECT_TRUE(equal(s / real(std::sqrt(128.0)), s * real(std::pow(128.0, -0.5))));
}

TEST(Expr, one_distance_has_one_spelling) {
  const ExprPtr slope = read("slopes", Type::real, {h});
  const ExprPtr plus = s * real(0.5) + slope * (j - i), minus = s * real(0.5) - slope * (i - j);
  EXPECT_EQ(print(plus), "s * 0.5 + slopes[h] * (j - i)");
  EXPECT_TRUE(equal(plus, minus)) << print(minus);
  EXPECT_EQ(print(unary("-", slope) * (i - j)), "slopes[h] * (j - i)");
  EXPECT_EQ(print(unary("abs", i - j)), "abs(j - i)");
}

TEST(Expr, arithmetic_on_a_mask_chooses_between_constants) {
  const ExprPtr keep = unary("float", binary("<=", j, i));
  EXPECT_EQ(print((real(1) - keep) * real(-1e9)), "where(j <= i, 0, -1e+09)");
}

TEST(Expr, quotient_and_remainder_join_again) {
  const ExprPtr g = binary("//", h, integer(4)), r = binary("%", h, integer(4));
  EXPECT_EQ(print(g * integer(4) + r), "h");
  EXPECT_EQ(print(b * integer(32) + r + integer(4) * g), "h + b * 32");
}

TEST(Expr, a_negative_divisor_turns_the_dividend) {
  EXPECT_EQ(print(binary("//", i - j, integer(-3))), "(j - i) // 3");
  EXPECT_EQ(print(binary("%", i - j, integer(-7))), "(j - i) % 7 * -1");
}

TEST(Expr, the_floor_of_a_quotient_of_integers_is_one_where_it_is_exact) {
  const ExprPtr one = integer(1);
  EXPECT_EQ(print(unary("floor", (i + one) / real(8192))), "(i + 1) // 8192");
  EXPECT_EQ(print(unary("floor", i * real(0.125))), "i // 8");
  EXPECT_EQ(print(unary("floor", unary("float", i) / real(8))), "i // 8");
  for (const ExprPtr& not_exact : {i * real(1.0 / 3), i * real(2.5), s / real(8), i * real(-0.5)})
    EXPECT_EQ(print(unary("floor", not_exact)).substr(0, 5), "floor") << print(not_exact);
}

TEST(Expr, parentheses_stand_only_where_they_are_needed) {
  EXPECT_EQ(print(s - (s - s * s)), "s - (s - s * s)");
  EXPECT_EQ(print(binary("//", i - j, integer(4))), "(i - j) // 4");
  EXPECT_EQ(print(where(binary("==", i, j), s, real(-HUGE_VAL))), "where(i == j, s, -inf)");
}

// A comparison in a random spelling keeps its truth value at random points.
TEST(Expr, simplification_never_changes_a_value) {
  std::mt19937 random(5);
  const auto pick = [&](int n) { return static_cast<int>(random() % n); };
  std::function<ExprPtr(int)> sum = [&](int depth) -> ExprPtr {
    const int k = pick(depth > 0 ? 9 : 5);
    if (k == 0) return i;
    if (k == 1) return j;
    if (k == 2) return integer(pick(9) - 4);
    if (k == 3) return size("N");
    if (k == 4) return prefix;
    if (k == 5) return sum(depth - 1) + sum(depth - 1);
    if (k == 6) return sum(depth - 1) - sum(depth - 1);
    if (k == 7) return sum(depth - 1) * integer(pick(5) - 2);
    return binary(pick(2) ? "//" : "%", sum(depth - 1), integer(1 + pick(4)));
  };
  for (int n = 0; n < 3000; ++n) {
    const ExprPtr x = sum(3), y = sum(3), z = sum(2);
    Scope at;
    at.indices = {{"b", 0}, {"h", pick(8)}, {"i", pick(20)}, {"j", pick(20)}, {"N", pick(30)}};
    at.read = [](const std::string&, const std::vector<int64_t>&) { return 7.0; };
    const double vx = evaluate(x, at), vy = evaluate(y, at), vz = evaluate(z, at);
    ASSERT_EQ(evaluate(x - y, at), vx - vy);
    const ExprPtr lt = binary("<", x, y), le = binary("<=", y, z);
    ASSERT_EQ(evaluate(lt, at), vx < vy) << print(x) << " < " << print(y) << " is " << print(lt);
    ASSERT_EQ(evaluate(le, at), vy <= vz) << print(le);
    ASSERT_EQ(evaluate(unary("not", binary("or", lt, le)), at), !(vx < vy || vy <= vz));
    ASSERT_EQ(evaluate(unary("float", x - y), at), vx - vy);
    ASSERT_EQ(evaluate(unary("abs", x - y), at), std::fabs(vx - vy));
  }
}

TEST(Expr, bits_of_coordinates_are_arithmetic_and_those_of_data_stay_bits) {
  const auto two = [](const char* op, const ExprPtr& a, const ExprPtr& b) {
    return binary(op, a, b);
  };
  const ExprPtr n = two("%", j, integer(32)), bit = two("<<", integer(1), n);
  const ExprPtr word = read("words", Type::integer, {i, two("//", j, integer(32))});
  EXPECT_EQ(print(two(">>", i, integer(6))), "i // 64");
  EXPECT_EQ(print(two("&", i - j, integer(63))), "(i - j) % 64");
  EXPECT_EQ(print(two("&", i, integer(-64))), "i // 64 * 64");
  EXPECT_EQ(print(two("<<", i, integer(3))), "i * 8");
  EXPECT_EQ(print(two("&", integer(7), prefix)), "prefix[b] & 7");
  EXPECT_EQ(print(two(">>", prefix, integer(3))), "prefix[b] >> 3");
  EXPECT_EQ(print(two("|", two("^", prefix, i) + j, integer(4))), "(j + (i ^ prefix[b])) | 4");
  EXPECT_EQ(print(two("&", two("==", i, j), two("<", i, j))), "i < j and i == j");
  EXPECT_EQ(print(two("^", two("<", i, j), two("<", j, prefix))),
            print(two("!=", two("<", i, j), two("<", j, prefix))));
  // One bit, in all the ways in which it is asked for.
  const std::string asked = "(words[i, j // 32] >> (j % 32)) & 1 == 1";
  const ExprPtr lowest = two("&", two(">>", word, n), integer(1)), both = two("&", word, bit);
  for (const ExprPtr& e : {two("==", lowest, integer(1)), two("!=", lowest, integer(0)),
                           two("!=", both, integer(0)), two("!=", integer(0), two("&", bit, word)),
                           two("==", both, bit), unary("not", two("==", both, integer(0)))})
    EXPECT_EQ(print(e), asked);
  for (const ExprPtr& e : {two("==", lowest, integer(0)), two("!=", lowest, integer(1)),
                           two("==", integer(0), both), two("!=", both, bit)})
    EXPECT_EQ(print(e), "(words[i, j // 32] >> (j % 32)) & 1 == 0");
  // A count that may be beyond the word has another meaning in the two spellings.
  EXPECT_EQ(print(two("!=", two("&", word, two("<<", integer(1), prefix)), integer(0))),
            "(1 << prefix[b]) & words[i, j // 32] != 0");
}

// Of both signs, and by counts on either side of a word's bits.
TEST(Expr, bits_have_the_value_that_they_have_in_two_s_complement) {
  std::mt19937_64 random(11);
  const ExprPtr x = read("x", Type::integer, {}), y = read("y", Type::integer, {});
  for (int n = 0; n < 4000; ++n) {
    const int64_t a = int32_t(random()) >> random() % 32, c = int64_t(random() % 80) - 8;
    const int64_t b = n % 3 == 0   ? (int64_t{1} << random() % 31) - int64_t(random() % 2)
                      : n % 3 == 1 ? int32_t(random()) >> random() % 32
                                   : c;
    Scope at;
    at.indices = {{"i", a}, {"j", b}};
    at.read = [&](const std::string& t, const std::vector<int64_t>&) {
      return double(t == "x" ? a : b);
    };
    const auto shift = [](int64_t v, int64_t by, bool left) -> int64_t {
      if (by < 0 || by > 63) return left ? 0 : v >> 63;
      return left ? int64_t(uint64_t(v) << by) : v >> by;
    };
    const std::pair<const char*, int64_t> all[] = {
        {"&", a & b}, {"|", a | b}, {"^", a ^ b}, {">>", shift(a, b, false)}};
    for (const auto& [op, want] : all)
      for (const ExprPtr& left : {x, i, integer(a)})
        for (const ExprPtr& right : {y, j, integer(b)})
          ASSERT_EQ(evaluate(binary(op, left, right), at), double(want))
              << a << " " << op << " " << b << " as " << print(binary(op, left, right));
    if (b < 20) {
      for (const ExprPtr& right : {y, integer(b)})
        ASSERT_EQ(evaluate(binary("<<", x, right), at), double(shift(a, b, true))) << a << " " << b;
    }
    for (const char* op : {"==", "!="}) {
      const ExprPtr bit = binary("<<", integer(1), binary("%", y, integer(32)));
      const bool set = a >> ((b % 32 + 32) % 32) & 1;
      const ExprPtr asked = binary(op, binary("&", x, bit), integer(0));
      ASSERT_EQ(evaluate(asked, at), (op[0] == '!') == set) << print(asked) << a << " " << b;
    }
  }
  Scope last;
  last.indices = {{"j", 63}};
  EXPECT_EQ(evaluate(binary("<<", integer(1), j), last), -0x1p63);
  EXPECT_EQ(evaluate(binary("&", binary("<<", integer(1), j), integer(5)), last), 0);
}

TEST(Expr, rewrite_rebuilds_and_simplifies) {
  const ExprPtr e = binary("<=", j, i);
  const ExprPtr at_zero =
      rewrite(e, [](const ExprPtr& x) { return x->name == "j" ? integer(-1) : nullptr; });
  EXPECT_EQ(print(at_zero), "-2 < i");
  EXPECT_TRUE(mentions(e, Kind::index, "j"));
  EXPECT_FALSE(mentions(at_zero, Kind::index, "j"));
}

// The user's line stays with an operator through a change of what is below it, and what takes an
// operator's place takes its line; an operator with a line of its own keeps that.
TEST(Expr, rewrite_keeps_the_users_lines) {
  const auto text = std::make_shared<const Source>(Source{"f.py", "one\ntwo\n"});
  const Span one{text, 0, 3}, two{text, 4, 7};
  const ExprPtr e = placed(binary("-", placed(s, one), prefix), two);
  EXPECT_EQ(placed(e, one)->span.begin, two.begin);
  const auto to = [&](Kind kind, const ExprPtr& by) {
    return rewrite(e, [&](const ExprPtr& x) { return x->kind == kind ? by : nullptr; });
  };
  EXPECT_EQ(to(Kind::index, h)->span.begin, two.begin);
  const ExprPtr changed = to(Kind::score, leaf(Kind::output, Type::real, "o"));
  EXPECT_EQ(changed->span.begin, two.begin);
  ASSERT_TRUE(changed->args[0]->span.known());
  EXPECT_EQ(changed->args[0]->span.begin, one.begin);
}

TEST(Expr, integers_floor_as_in_python) {
  EXPECT_EQ(binary("//", integer(-7), integer(2))->integer, -4);
  EXPECT_EQ(binary("%", integer(-7), integer(2))->integer, 1);
}

}  // namespace
}  // namespace kw::spec
