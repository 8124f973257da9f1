// Expressions of launch.json: integers, reals, and why one has no value.
#include "runtime/launch/expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace kw::runtime {
namespace {

using Json = nlohmann::json;

std::optional<Number> value(const std::string& json, std::string* reason = nullptr) {
  std::string why;
  const Bindings sizes = {{"M", int64_t{1000}}, {"H", int64_t{4}}, {"SMS", int64_t{132}}};
  const auto e = Expression::read(Json::parse(json), why);
  const auto result = e ? e->evaluate(sizes, why) : std::nullopt;
  if (reason) *reason = why;
  return result;
}

TEST(Expressions, StayIntegersWhereTheyCan) {
  EXPECT_EQ(value(R"(["min", ["*", ["ceil_div", "M", 128], "H"], "SMS"])"), Number(int64_t{32}));
  EXPECT_EQ(value(R"(["//", -7, 2])"), Number(int64_t{-4}));
  EXPECT_EQ(value(R"(["%", -7, 4])"), Number(int64_t{1}));
  EXPECT_EQ(value(R"(["ceil_div", -7, 2])"), Number(int64_t{-3}));
  EXPECT_EQ(value(R"(["gcd", 12, 18, 8])"), Number(int64_t{2}));
  EXPECT_EQ(value(R"(["floor_pow2", 100])"), Number(int64_t{64}));
  EXPECT_EQ(value(R"(["-", "M"])"), Number(int64_t{-1000}));
  EXPECT_EQ(value(R"(["-", 3, 5])"), Number(int64_t{-2}));
  EXPECT_EQ(value(R"(["max", 3, 5, 4])"), Number(int64_t{5}));
}

TEST(Expressions, GiveRealsForRootsAndQuotients) {
  EXPECT_DOUBLE_EQ(
      as_real(*value(R"(["*", ["rsqrt", 128], "log2e"])")),
      static_cast<float>(1 / std::sqrt(128.0)) * static_cast<float>(1.4426950408889634));
  EXPECT_EQ(value(R"(["/", 1, 4])"), Number(0.25));
  EXPECT_EQ(value(R"(["sqrt", 16])"), Number(4.0));
}

TEST(Expressions, SayWhatHasNoValue) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(["+", "N", 1])", "nothing says what 'N' is"},
      {R"(["//", 1, 0])", "// of 1 and 0 has no value in 64 bits"},
      {R"(["*", 9223372036854775807, 2])",
       "* of 9223372036854775807 and 2 has no value in 64 bits"},
      {R"(["%", 1.5, 2])", "% takes integers, and 1.5 is not one"},
      {R"(["/", 1, 0])", "/ of 1 and 0 is not finite"},
      {R"(["floor_pow2", 0])", "floor_pow2 of 0 and 0 has no value in 64 bits"},
      {R"(["exp", 1])", "unknown function 'exp'"},
      {R"(["//", 1])", "'//' does not take 1 operands"},
      {R"({})", "an expression is a number, a name or [function, operand, ...], not {}"}};
  for (const auto& [json, expected] : cases) {
    std::string why;
    EXPECT_FALSE(value(json, &why)) << json;
    EXPECT_EQ(why, expected);
  }
}

TEST(Expressions, PrintAsAPersonWritesThem) {
  std::string why;
  EXPECT_EQ(
      Expression::read(Json::parse(R"(["min", ["*", ["+", "a", 1], "b"], "SMS"])"), why)->text(),
      "min((a + 1) * b, SMS)");
}

}  // namespace
}  // namespace kw::runtime
