// Derivatives of expressions against differences of their values.
#include "operator/expr/derivative.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kw::spec {
namespace {

const ExprPtr s = score_leaf(0);

double at(const ExprPtr& e, double x) {
  Scope scope;
  scope.scores = {x};
  scope.scalars = {{"t", 1.75}};
  scope.indices = {{"i", 7}, {"j", 4}};
  return evaluate(e, scope);
}

ExprPtr one(const char* f) { return unary(f, s); }
ExprPtr two(const char* f, const ExprPtr& a, const ExprPtr& b) { return binary(f, a, b); }

TEST(Derivative, is_what_values_differ_by) {
  const ExprPtr t = leaf(Kind::argument, Type::real, "t"),
                distance = unary("float", two("-", leaf(Kind::index, Type::integer, "i"),
                                              leaf(Kind::index, Type::integer, "j")));
  const ExprPtr softcap = two("*", real(20), unary("tanh", two("/", s, real(20))));
  const std::vector<ExprPtr> all = {one("exp"),
                                    one("exp2"),
                                    one("log"),
                                    one("log2"),
                                    one("sqrt"),
                                    one("rsqrt"),
                                    one("reciprocal"),
                                    one("tanh"),
                                    one("sigmoid"),
                                    one("relu"),
                                    one("abs"),
                                    one("sin"),
                                    one("cos"),
                                    one("erf"),
                                    one("-"),
                                    softcap,
                                    two("+", two("*", s, t), distance),
                                    two("*", softcap, softcap),
                                    two("/", t, s),
                                    two("/", s, two("+", s, t)),
                                    two("**", s, real(3)),
                                    two("min", s, two("*", t, two("*", s, s))),
                                    two("max", s, two("*", t, two("*", s, s))),
                                    where(two("<", s, t), two("*", s, s), one("exp")),
                                    two("-", distance, two("*", t, s))};
  for (const ExprPtr& e : all)
    for (const double x : {0.3, 0.9, 2.5}) {
      ExprPtr operation;
      const auto d = derivative(e, s, operation);
      ASSERT_TRUE(d) << print(e);
      constexpr double kStep = 1e-6;
      const double wanted = (at(e, x + kStep) - at(e, x - kStep)) / (2 * kStep);
      EXPECT_NEAR(at(*d, x), wanted, 1e-7 * (1 + std::fabs(wanted))) << print(e) << " at " << x;
    }
}

TEST(Derivative, is_pytorchs_where_there_is_none) {
  ExprPtr operation;
  EXPECT_EQ(at(*derivative(one("relu"), s, operation), 0), 0);
  EXPECT_EQ(at(*derivative(one("abs"), s, operation), 0), 0);
  EXPECT_EQ(at(*derivative(two("max", s, real(0)), s, operation), 0), 0.5);
}

TEST(Derivative, of_what_does_not_change_is_zero) {
  ExprPtr operation;
  for (const ExprPtr& e : {one("floor"), one("sign"), real(3), unary("float", unary("int", s))})
    EXPECT_EQ(print(*derivative(e, s, operation)), "0") << print(e);
}

TEST(Derivative, an_operation_without_one_is_named) {
  ExprPtr operation;
  const ExprPtr power = two("**", real(2), s);
  EXPECT_FALSE(derivative(two("+", one("exp"), power), s, operation));
  EXPECT_EQ(print(operation), print(power));
}

}  // namespace
}  // namespace kw::spec
