// Expressions: printing with the fewest parentheses, types, intervals.
#include <gtest/gtest.h>

#include "tl/program.h"
#include "tl/scope/scope.h"

namespace kw::tl {
namespace {

ExprPtr read(const std::string& text) {
  Diagnostics d;
  ExprPtr e = parse_expr(text, d);
  EXPECT_TRUE(e) << render(d);
  return e;
}

TEST(Expr, prints_the_parentheses_it_needs_and_no_others) {
  for (const char* text : {"a + b * c",
                           "(a + b) * c",
                           "a - (b - c)",
                           "a - b - c",
                           "a // (b // c)",
                           "-(a + b)",
                           "-a * b",
                           "-(-a)",
                           "-inf",
                           "-(-inf)",
                           "a - -inf",
                           "not a == b",
                           "not (a or b) and c",
                           "(a == b) == c",
                           "a or b and c",
                           "(a or b) and c",
                           "where(a < b, a, b).x",
                           "k_s[t + 1]",
                           "q_s[me][u]",
                           "prefix[c.b]",
                           "slopes[b, h]",
                           "exp2(fma(s[i, j], scale, -offset[i]))",
                           "1.0e-30",
                           "(a >> (b % 32)) & 1 == 1",
                           "(a | b) ^ (-c << 3)",
                           "a & b == c or not a & b == c",
                           "f(a & b, a >> b)",
                           "(a & b) + 1",
                           "(not a) == b"})
    EXPECT_EQ(print(read(text)), text);
  for (const char* text :
       {"a & b | c", "a & b & c", "a + b >> c", "a >> b + c", "a * b & c", "a & b * c"}) {
    Diagnostics d;
    EXPECT_FALSE(parse_expr(text, d)) << text;
    EXPECT_NE(render(d).find("write parentheses"), std::string::npos) << render(d);
  }
  EXPECT_EQ(print(read("((a)) + (b * (c))")), "a + b * c");
}

TEST(Expr, built_trees_read_back_as_themselves) {
  for (const ExprPtr& e :
       {integer(-3), real(-0.5), real(1e-30), real(8), real(0.1), unary("-", integer(2)),
        binary("-", name("a"), binary("-", name("b"), integer(-1))),
        where(name("c"), real(0), name("-inf"))})
    EXPECT_TRUE(equal(read(print(e)), e)) << print(e);
  EXPECT_EQ(print(real(0.1)), "0.1");
  EXPECT_EQ(print(real(8)), "8.0");
}

TEST(Expr, rewriting_shares_what_does_not_change) {
  const ExprPtr e = read("min(a, n) + max(b, m)");
  const ExprPtr out =
      rewrite(e, [](const ExprPtr& x) { return x->is_name("n") ? name("N") : nullptr; });
  EXPECT_EQ(print(out), "min(a, N) + max(b, m)");
  EXPECT_EQ(out->args[1], e->args[1]);
  EXPECT_TRUE(mentions(out, "N"));
  EXPECT_FALSE(mentions(out, "n"));
}

TEST(Expr, a_part_within_another_is_replaced_only_where_it_stands_alone) {
  const Replacement inner{read("a"), name("x")}, outer{read("m[a] + 1"), name("y")};
  for (const auto& parts : {std::vector{inner, outer}, std::vector{outer, inner}})
    EXPECT_EQ(print(replace(read("f(m[a] + 1, a) * m[a]"), parts)), "f(y, x) * m[x]");
}

constexpr const char* kModule =
    "param BM = 128, WARPGROUPS = BM // 64\n"
    "args:\n"
    "    prefix: in i32[B]\n"
    "    slopes: in f32[H]\n"
    "    H, G, M, N: size\n"
    "    window: i32\n"
    "    scale: f32 = rsqrt(BM) * log2e\n"
    "shared:\n"
    "    tile q_s[WARPGROUPS]: ring(2) of element[64, BM]\n"
    "record Block: m, h\n"
    "def block_of(w: index) -> Block:\n"
    "    let rows = ceil_div(M, BM), last = rows - 1\n"
    "    return w % rows, last\n"
    "kernel k, threads 128:\n"
    "    warpgroups me from 1, registers 240:\n"
    "        accumulator s: real[64, 64]\n"
    "        row m, n = m: real[64]\n"
    "        let c = block_of(3)\n"
    "        var t = 0\n"
    "        for t, n in range_down_counted(N - 1, 0):\n"
    "            for r in range(WARPGROUPS):\n"
    "                let x = 1.5, i0 = c.m * BM\n"
    "                fence_async\n";

// Calls f in the scope of the innermost statement of the module above.
void inside(const std::function<void(const Scope&)>& f) {
  Diagnostics d;
  const std::optional<Program> p = parse(make_source("k.tl", kModule), d);
  ASSERT_TRUE(p) << render(d);
  bool seen = false;
  walk_scoped(*p, [&](const Stmt& s, const Scope& scope) {
    if (s.op != Op::fence_async) return;
    seen = true;
    f(scope);
  });
  EXPECT_TRUE(seen);
}

TEST(Scope, finds_the_innermost_name_with_what_it_stands_for) {
  inside([](const Scope& scope) {
    EXPECT_EQ(scope.find("n")->category, Category::local);  // the counter hides the row vector
    EXPECT_EQ(scope.find("n")->span.place(), "k.tl:20:16");
    EXPECT_EQ(scope.find("q_s")->category, Category::ring);
    EXPECT_EQ(print(scope.find("q_s")->extent), "WARPGROUPS");
    EXPECT_EQ(print(scope.find("q_s")->shape[1]), "BM");
    EXPECT_EQ(scope.find("prefix")->dims, std::vector<std::string>{"B"});
    EXPECT_FALSE(scope.find("prefix")->written);
    EXPECT_EQ(scope.find("Block")->fields, (std::vector<std::string>{"m", "h"}));
    EXPECT_EQ(scope.find("block_of")->params[0].type, "index");
    EXPECT_EQ(scope.find("s")->stmt->op, Op::accumulator);
    EXPECT_EQ(scope.find("rows"), nullptr);  // of another block
    EXPECT_EQ(scope.find("w"), nullptr);
  });
}

TEST(Scope, knows_types) {
  inside([](const Scope& scope) {
    const auto kind = [&](const char* text) { return type_of(read(text), scope).kind; };
    EXPECT_EQ(kind("c"), Type::record);
    EXPECT_EQ(kind("c.m * BM + r"), Type::integer);
    EXPECT_EQ(kind("prefix[c.h]"), Type::integer);
    EXPECT_EQ(kind("slopes[c.h] * x"), Type::real);
    EXPECT_EQ(kind("s[i, j]"), Type::real);
    EXPECT_EQ(kind("min(r, 3)"), Type::integer);
    EXPECT_EQ(kind("f32(r) / scale"), Type::real);
    EXPECT_EQ(kind("r < 3 and true"), Type::boolean);
    EXPECT_EQ(kind("r + x"), Type::unknown);  // an int and a real
    EXPECT_EQ(kind("where(r < 1, 1, 0.0)"), Type::unknown);
    EXPECT_EQ(kind("nobody"), Type::unknown);
  });
}

TEST(Intervals, bound_what_names_can_be) {
  inside([](const Scope& scope) {
    const auto range = [&](const char* text) { return interval_of(read(text), scope); };
    constexpr int64_t kFar = Interval::kFar;
    EXPECT_EQ(range("WARPGROUPS"), (Interval{2, 2}));
    EXPECT_EQ(range("N"), (Interval{1, kFar}));
    EXPECT_EQ(range("n"), (Interval{0, kFar}));
    EXPECT_EQ(range("r"), (Interval{0, 1}));
    EXPECT_EQ(range("t"), (Interval{0, kFar}));
    EXPECT_EQ(range("me"), (Interval{0, kFar}));
    EXPECT_EQ(range("window"), (Interval{-kFar, kFar}));
    EXPECT_EQ(range("prefix[0]"), (Interval{-kFar, kFar}));
    EXPECT_EQ(range("i0"), (Interval{0, kFar}));
    EXPECT_EQ(range("ceil_div(M, BM) - 1"), (Interval{0, kFar}));
    EXPECT_EQ(range("N - M"), (Interval{-kFar, kFar}));
    EXPECT_EQ(range("(5 - 8) // 2"), (Interval{-2, -2}));
    EXPECT_EQ(range("(0 - 1) // N"), (Interval{-1, -1}));
    EXPECT_EQ(range("(N - M) % 7"), (Interval{0, 6}));
    EXPECT_EQ(range("r % N"), (Interval{0, 1}));
    EXPECT_EQ(range("max(window, 3)"), (Interval{3, kFar}));
    EXPECT_EQ(range("where(r < 1, -4, r * 3)"), (Interval{-4, 3}));
    EXPECT_EQ(range("abs(r - 5)"), (Interval{4, 5}));
  });
}

TEST(Intervals, of_small_values_hold_every_value) {
  // ceil_div, // and % over all small operands, against their definitions.
  for (int lo = -6; lo <= 6; ++lo)
    for (int hi = lo; hi <= 6; ++hi)
      for (int d = 1; d <= 4; ++d) {
        Scope scope;
        Symbol a{"a"}, b{"b"};
        a.range = {lo, hi};
        b.range = {1, d};
        scope.add(a);
        scope.add(b);
        const auto holds = [&](const char* text, int value) {
          const Interval r = interval_of(read(text), scope);
          EXPECT_TRUE(r.lo <= value && value <= r.hi)
              << text << " " << lo << ".." << hi << " " << d;
        };
        for (int x = lo; x <= hi; ++x)
          for (int y = 1; y <= d; ++y) {
            const int floor = x >= 0 ? x / y : -((y - 1 - x) / y);
            holds("a // b", floor);
            holds("a % b", x - floor * y);
            holds("ceil_div(a, b)", x > 0 ? (x + y - 1) / y : -(-x / y));
            holds("a * b - b", x * y - y);
          }
      }
}

}  // namespace
}  // namespace kw::tl
