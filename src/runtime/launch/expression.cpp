#include "runtime/launch/expression.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>

namespace kw::runtime {
namespace {

using Integers = std::optional<int64_t> (*)(int64_t, int64_t);
using Reals = double (*)(double, double);

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// One row a function. A function with no `real` column takes integers only; with no `integer`
// column its result is real.
struct Function {
  const char* name;
  int least, most;  // operands
  Integers integer;
  Reals real;
};

template <bool (*Op)(int64_t, int64_t, int64_t*)>
std::optional<int64_t> checked(int64_t a, int64_t b) {
  int64_t result;
  if (Op(a, b, &result)) return std::nullopt;
  return result;
}
bool add(int64_t a, int64_t b, int64_t* r) { return __builtin_add_overflow(a, b, r); }
bool subtract(int64_t a, int64_t b, int64_t* r) { return __builtin_sub_overflow(a, b, r); }
bool multiply(int64_t a, int64_t b, int64_t* r) { return __builtin_mul_overflow(a, b, r); }

constexpr int64_t smallest = std::numeric_limits<int64_t>::min();
bool divides(int64_t a, int64_t b) { return b != 0 && !(a == smallest && b == -1); }

std::optional<int64_t> quotient(int64_t a, int64_t b) {
  if (!divides(a, b)) return std::nullopt;
  return floor_div(a, b);
}
std::optional<int64_t> remainder(int64_t a, int64_t b) {
  if (!divides(a, b)) return std::nullopt;
  return a - floor_div(a, b) * b;
}
std::optional<int64_t> ceil_quotient(int64_t a, int64_t b) {
  if (!divides(a, b)) return std::nullopt;
  return floor_div(a, b) + (a % b != 0);
}
std::optional<int64_t> greatest_divisor(int64_t a, int64_t b) {
  if (a == smallest || b == smallest) return std::nullopt;
  return std::gcd(a, b);
}
std::optional<int64_t> power_below(int64_t a, int64_t) {
  if (a < 1) return std::nullopt;
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(a)));
}

constexpr int many = std::numeric_limits<int>::max();
const Function functions[] = {
    {"+", 2, many, checked<add>, [](double a, double b) { return a + b; }},
    {"-", 1, 2, checked<subtract>, [](double a, double b) { return a - b; }},
    {"*", 2, many, checked<multiply>, [](double a, double b) { return a * b; }},
    {"/", 2, 2, nullptr, [](double a, double b) { return a / b; }},
    {"//", 2, 2, quotient, nullptr},
    {"%", 2, 2, remainder, nullptr},
    {"min", 2, many, [](int64_t a, int64_t b) -> std::optional<int64_t> { return std::min(a, b); },
     [](double a, double b) { return std::fmin(a, b); }},
    {"max", 2, many, [](int64_t a, int64_t b) -> std::optional<int64_t> { return std::max(a, b); },
     [](double a, double b) { return std::fmax(a, b); }},
    {"ceil_div", 2, 2, ceil_quotient, nullptr},
    {"gcd", 2, many, greatest_divisor, nullptr},
    {"floor_pow2", 1, 1, power_below, nullptr},
    {"rsqrt", 1, 1, nullptr, [](double a, double) { return 1 / std::sqrt(a); }},
    {"sqrt", 1, 1, nullptr, [](double a, double) { return std::sqrt(a); }},
};

const Function* function_named(std::string_view name) {
  for (const Function& f : functions)
    if (name == f.name) return &f;
  return nullptr;
}

double as_fp32(Number x) { return static_cast<float>(as_real(x)); }

std::optional<Number> apply(const Function& f, Number a, Number b, std::string& why) {
  const auto* x = std::get_if<int64_t>(&a);
  const auto* y = std::get_if<int64_t>(&b);
  if (x && y && f.integer) {
    if (const auto result = f.integer(*x, *y)) return *result;
    why = fmt::format("{} of {} and {} has no value in 64 bits", f.name, *x, *y);
    return std::nullopt;
  }
  if (!f.real) {
    why = fmt::format("{} takes integers, and {} is not one", f.name, as_real(x ? b : a));
    return std::nullopt;
  }
  // As the program has it: an operation of fp32 rounds once.
  const double result = static_cast<float>(f.real(as_fp32(a), as_fp32(b)));
  if (std::isfinite(result)) return result;
  why = fmt::format("{} of {} and {} is not finite", f.name, as_real(a), as_real(b));
  return std::nullopt;
}

}  // namespace

double as_real(Number x) {
  return std::visit([](auto value) { return static_cast<double>(value); }, x);
}

std::optional<Expression> Expression::read(const nlohmann::json& json, std::string& why) {
  Expression e;
  if (json.is_number_integer()) {
    e.leaf_ = Number(json.get<int64_t>());
    return e;
  }
  if (json.is_number()) {
    e.leaf_ = Number(json.get<double>());
    return e;
  }
  if (json.is_string()) {
    e.leaf_ = json.get<std::string>();
    return e;
  }
  if (!json.is_array() || json.empty() || !json[0].is_string()) {
    why = "an expression is a number, a name or [function, operand, ...], not " + json.dump();
    return std::nullopt;
  }
  e.function_ = json[0].get<std::string>();
  const Function* function = function_named(e.function_);
  if (!function) {
    why = fmt::format("unknown function '{}'", e.function_);
    return std::nullopt;
  }
  const int count = static_cast<int>(json.size()) - 1;
  if (count < function->least || count > function->most) {
    why = fmt::format("'{}' does not take {} operands", e.function_, count);
    return std::nullopt;
  }
  for (int i = 1; i <= count; ++i) {
    std::optional<Expression> operand = read(json[i], why);
    if (!operand) return std::nullopt;
    e.operands_.push_back(std::move(*operand));
  }
  return e;
}

std::optional<Number> Expression::evaluate(const Bindings& bindings, std::string& why) const {
  if (function_.empty()) {
    if (const auto* number = std::get_if<Number>(&leaf_)) return *number;
    const std::string& name = std::get<std::string>(leaf_);
    if (const auto bound = bindings.find(name); bound != bindings.end()) return bound->second;
    if (name == "log2e") return std::numbers::log2e;
    why = fmt::format("nothing says what '{}' is", name);
    return std::nullopt;
  }
  const Function& function = *function_named(function_);
  std::optional<Number> result = operands_[0].evaluate(bindings, why);
  if (!result) return std::nullopt;
  if (operands_.size() == 1)
    return function_ == "-" ? apply(function, int64_t{0}, *result, why)
                            : apply(function, *result, int64_t{0}, why);
  for (size_t i = 1; i < operands_.size(); ++i) {
    const std::optional<Number> operand = operands_[i].evaluate(bindings, why);
    if (!operand) return std::nullopt;
    if (!(result = apply(function, *result, *operand, why))) return std::nullopt;
  }
  return result;
}

void Expression::names(std::vector<std::string>& into) const {
  if (function_.empty() && std::holds_alternative<std::string>(leaf_))
    into.push_back(std::get<std::string>(leaf_));
  for (const Expression& operand : operands_) operand.names(into);
}

std::string Expression::text() const {
  if (function_.empty()) {
    if (const auto* name = std::get_if<std::string>(&leaf_)) return *name;
    return std::visit([](auto value) { return fmt::format("{}", value); }, std::get<Number>(leaf_));
  }
  const bool infix =
      !std::isalpha(static_cast<unsigned char>(function_[0])) && operands_.size() > 1;
  std::string list;
  for (const Expression& operand : operands_) {
    if (!list.empty()) list += infix ? " " + function_ + " " : ", ";
    const bool nested = infix && !operand.function_.empty() &&
                        !std::isalpha(static_cast<unsigned char>(operand.function_[0])) &&
                        operand.function_ != function_;
    list += nested ? "(" + operand.text() + ")" : operand.text();
  }
  return infix ? list : function_ + "(" + list + ")";
}

}  // namespace kw::runtime
