// Arithmetic over sizes that is done at launch: the grid, derived scalars, preconditions.
//
// In launch.json an expression is a number, a name, or an array whose head is a function:
//   ["min", ["*", ["ceil_div", "M", 128], "H", "B"], "SMS"]
// Functions: + - * (two or more operands; - also one), / // %, min max, ceil_div, gcd, floor_pow2,
// rsqrt, sqrt. `log2e` is a name that is always bound. Integers stay integers, exactly, in 64 bits;
// / rsqrt sqrt give reals. // and % floor, as in Python.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kw::runtime {

using Number = std::variant<int64_t, double>;
using Bindings = std::map<std::string, Number, std::less<>>;

double as_real(Number x);

class Expression {
 public:
  // Nothing, with the reason in `why`, when the form, a function or a number of operands is wrong.
  static std::optional<Expression> read(const nlohmann::json& json, std::string& why);

  // Nothing, with the reason in `why`: an unbound name, a division by zero, a real operand where
  // an integer is needed, or a result that 64 bits do not hold.
  std::optional<Number> evaluate(const Bindings& bindings, std::string& why) const;

  // The names it reads, with repetitions.
  void names(std::vector<std::string>& into) const;
  // As a person writes it: "min(ceil_div(M, 128) * H * B, SMS)".
  std::string text() const;

 private:
  std::variant<Number, std::string> leaf_;  // when function_ is empty
  std::string function_;
  std::vector<Expression> operands_;
};

}  // namespace kw::runtime
