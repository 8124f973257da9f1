// Adjoints of row maps: what a map's change weighs by a gradient is what the change weighs by the
// adjoint of the gradient.
#include "operator/families/attention_bwd/adjoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kw::spec {
namespace {

constexpr int64_t kColumns = 16;
const ExprPtr d = leaf(Kind::index, Type::integer, "d"), i = leaf(Kind::index, Type::integer, "i");

ExprPtr two(const char* f, const ExprPtr& a, const ExprPtr& b) { return binary(f, a, b); }
ExprPtr x_at(const ExprPtr& column) { return read("x", Type::real, {i, column}); }
ExprPtr table(const char* name, const ExprPtr& column) {
  return read(name, Type::real, {i, column});
}
ExprPtr total(int n) { return leaf(Kind::total, Type::real, std::to_string(n)); }
ExprPtr shifted(int64_t by) { return two("+", d, integer(by)); }

Operand operand(RowMap map) { return {"x", {i, d}, std::move(map)}; }

using Row = std::vector<double>;

// The rows that a map reads, by tensor; what it makes of them.
Row made(const RowMap& map, const std::map<std::string, Row>& rows) {
  Scope scope;
  scope.indices = {{"i", 0}, {"b", 0}, {"h", 0}};
  scope.read = [&](const std::string& name, const std::vector<int64_t>& at) {
    const int64_t column = at.back();
    return column < 0 || column >= kColumns ? NAN : rows.at(name)[column];
  };
  for (const ExprPtr& sum : map.sums) {
    double all = 0;
    for (scope.indices["d"] = 0; scope.indices["d"] < kColumns; ++scope.indices["d"])
      all += evaluate(sum, scope);
    scope.totals.push_back(all);
  }
  Row out;
  for (scope.indices["d"] = 0; scope.indices["d"] < kColumns; ++scope.indices["d"])
    out.push_back(evaluate(map.element, scope));
  return out;
}

double dot(const Row& a, const Row& b) {
  double out = 0;
  for (size_t n = 0; n < a.size(); ++n) out += a[n] * b[n];
  return out;
}

void expect_adjoint(const RowMap& map) {
  std::string why;
  const auto turned = adjoint(operand(map), "i", kColumns, "dy", why);
  ASSERT_TRUE(turned) << why;
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::map<std::string, Row> rows;
  for (const char* name : {"x", "dy", "cos", "sin", "w", "change"}) {
    Row& row = rows[name];
    for (int64_t n = 0; n < kColumns; ++n) row.push_back(normal(random));
  }
  const double step = 1e-5;
  const auto moved = [&](double by) {
    std::map<std::string, Row> there = rows;
    for (int64_t n = 0; n < kColumns; ++n) there["x"][n] += by * rows["change"][n];
    return dot(made(map, there), rows["dy"]);
  };
  EXPECT_NEAR((moved(step) - moved(-step)) / (2 * step), dot(made(*turned, rows), rows["change"]),
              1e-7)
      << print(turned->element);
}

ExprPtr rotated(const std::function<ExprPtr(const ExprPtr&)>& of) {
  const ExprPtr half = where(two("<", d, integer(8)), unary("-", of(shifted(8))), of(shifted(-8)));
  return two("+", two("*", of(d), table("cos", d)), two("*", half, table("sin", d)));
}

ExprPtr norm() {
  return unary("rsqrt", two("+", two("*", total(0), real(1.0 / kColumns)), real(0.01)));
}

ExprPtr normed(const ExprPtr& column) {
  return two("*", two("*", x_at(column), norm()), table("w", column));
}

TEST(Adjoint, of_scales_rotations_and_norms) {
  expect_adjoint({{}, two("*", x_at(d), table("w", d))});
  expect_adjoint({{}, rotated(x_at)});
  expect_adjoint({{two("*", x_at(d), x_at(d))}, normed(d)});
  expect_adjoint({{two("*", x_at(d), x_at(d))}, rotated(normed)});
}

TEST(Adjoint, of_neighbours_that_are_rotated) {
  const ExprPtr pair = two("*", two("//", d, integer(2)), integer(2)),
                next = two("+", pair, integer(1)),
                even = two("==", two("%", d, integer(2)), integer(0));
  const auto rotate = [&](const ExprPtr& a, const char* op, const ExprPtr& b) {
    return two(op, two("*", x_at(a), table("cos", pair)), two("*", x_at(b), table("sin", pair)));
  };
  expect_adjoint({{}, where(even, rotate(pair, "-", next), rotate(next, "+", pair))});
}

TEST(Adjoint, of_a_sum_that_is_made_with_another) {
  const ExprPtr mean = two("*", total(0), real(1.0 / kColumns)), off = two("-", x_at(d), mean),
                root = unary("rsqrt", two("+", total(1), real(0.1)));
  expect_adjoint({{x_at(d), two("*", off, off)}, two("*", off, root)});
}

TEST(Adjoint, of_a_part_of_the_columns) {
  const ExprPtr half =
      where(two("<", d, integer(2)), unary("-", x_at(shifted(2))), x_at(shifted(-2)));
  expect_adjoint({{}, where(two("<", d, integer(4)), two("*", half, table("sin", d)), x_at(d))});
  expect_adjoint({{}, where(two("<=", integer(3), d), x_at(shifted(-3)), real(0))});
}

std::string refused(const RowMap& map) {
  std::string why;
  EXPECT_FALSE(adjoint(operand(map), "i", kColumns, "dy", why));
  return why;
}

TEST(Adjoint, that_no_rule_makes_are_refused_with_the_reason) {
  const ExprPtr shuffled = two("%", two("*", d, integer(5)), integer(kColumns));
  EXPECT_EQ(refused({{}, x_at(shuffled)}), "no rule turns the columns `d * 5 % 16` round");
  const ExprPtr of_data = unary("int", table("w", d));
  EXPECT_EQ(refused({{}, x_at(of_data)}).rfind("which column `int(w[i, d])` is", 0), 0u);
  EXPECT_EQ(refused({{x_at(d), x_at(d), x_at(d)}, total(2)}),
            "3 sums over a row are made, and 3 more go back through them");
}

}  // namespace
}  // namespace kw::spec
