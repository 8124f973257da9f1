#include "operator/expr/fold.h"

#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace kw::spec {
namespace {

struct Row {
  Kind kind;
  std::string_view name;
  Op op;
};

constexpr std::array kRows = {
    Row{Kind::binary, "+", Op::add},
    Row{Kind::binary, "-", Op::subtract},
    Row{Kind::binary, "*", Op::multiply},
    Row{Kind::binary, "/", Op::divide},
    Row{Kind::binary, "//", Op::floor_divide},
    Row{Kind::binary, "%", Op::modulo},
    Row{Kind::binary, "**", Op::power},
    Row{Kind::binary, "min", Op::minimum},
    Row{Kind::binary, "max", Op::maximum},
    Row{Kind::binary, "==", Op::equal},
    Row{Kind::binary, "!=", Op::not_equal},
    Row{Kind::binary, "<", Op::less},
    Row{Kind::binary, "<=", Op::less_equal},
    Row{Kind::binary, "and", Op::logical_and},
    Row{Kind::binary, "or", Op::logical_or},
    Row{Kind::unary, "-", Op::negate},
    Row{Kind::binary, "&", Op::bit_and},
    Row{Kind::binary, "|", Op::bit_or},
    Row{Kind::binary, "^", Op::bit_xor},
    Row{Kind::binary, "<<", Op::shift_left},
    Row{Kind::binary, ">>", Op::shift_right},
    Row{Kind::unary, "not", Op::logical_not},
    Row{Kind::unary, "exp", Op::exp},
    Row{Kind::unary, "exp2", Op::exp2},
    Row{Kind::unary, "log", Op::log},
    Row{Kind::unary, "log2", Op::log2},
    Row{Kind::unary, "sqrt", Op::sqrt},
    Row{Kind::unary, "rsqrt", Op::rsqrt},
    Row{Kind::unary, "reciprocal", Op::reciprocal},
    Row{Kind::unary, "tanh", Op::tanh},
    Row{Kind::unary, "sigmoid", Op::sigmoid},
    Row{Kind::unary, "relu", Op::relu},
    Row{Kind::unary, "abs", Op::abs},
    Row{Kind::unary, "floor", Op::floor},
    Row{Kind::unary, "ceil", Op::ceil},
    Row{Kind::unary, "sin", Op::sin},
    Row{Kind::unary, "cos", Op::cos},
    Row{Kind::unary, "float", Op::to_float},
    Row{Kind::unary, "int", Op::to_int},
    Row{Kind::unary, "erf", Op::erf},
    Row{Kind::unary, "sign", Op::sign},
};

// Operators on the bits of integers, which are exact in a double. As in PyTorch, a count that is
// negative or beyond the word moves every bit out. What is no integer in 64 bits (the NaN of a read
// out of range) has no bits.
double apply_to_bits(Op op, double a, double b) {
  constexpr double kEnd = 0x1p63;  // 1 << 63 is -kEnd, a word like others
  const auto is_word = [](double x) { return x >= -kEnd && x < kEnd; };
  if (!is_word(a) || !is_word(b)) return std::numeric_limits<double>::quiet_NaN();
  const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  const bool within = y >= 0 && y < 64;
  switch (op) {
    case Op::bit_and:
      return static_cast<double>(x & y);
    case Op::bit_or:
      return static_cast<double>(x | y);
    case Op::bit_xor:
      return static_cast<double>(x ^ y);
    case Op::shift_left:
      return within ? static_cast<double>(static_cast<int64_t>(static_cast<uint64_t>(x) << y)) : 0;
    default:
      return static_cast<double>(x >> (within ? y : 63));
  }
}

}  // namespace

Op op_of(Kind kind, const std::string& name) {
  for (const Row& r : kRows)
    if (r.kind == kind && r.name == name) return r.op;
  return Op::invalid;
}

namespace {

[[gnu::always_inline]] inline double apply_one(Op op, double a, double b) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  switch (op) {
    case Op::add:
      return a + b;
    case Op::subtract:
      return a - b;
    case Op::multiply:
      return a * b;
    case Op::divide:
      return a / b;
    case Op::floor_divide:
      return std::floor(a / b);
    case Op::modulo:
      return a - b * std::floor(a / b);
    case Op::power:
      return std::pow(a, b);
    // A NaN wins, as in torch.minimum.
    case Op::minimum:
      return std::isnan(a) || std::isnan(b) ? kNan : std::fmin(a, b);
    case Op::maximum:
      return std::isnan(a) || std::isnan(b) ? kNan : std::fmax(a, b);
    case Op::equal:
      return a == b;
    case Op::not_equal:
      return a != b;
    case Op::less:
      return a < b;
    case Op::less_equal:
      return a <= b;
    case Op::logical_and:
      return a != 0 && b != 0;
    case Op::logical_or:
      return a != 0 || b != 0;
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shift_left:
    case Op::shift_right:
      return apply_to_bits(op, a, b);
    case Op::negate:
      return -a;
    case Op::logical_not:
      return a == 0;
    case Op::exp:
      return std::exp(a);
    case Op::exp2:
      return std::exp2(a);
    case Op::log:
      return std::log(a);
    case Op::log2:
      return std::log2(a);
    case Op::sqrt:
      return std::sqrt(a);
    case Op::rsqrt:
      return 1 / std::sqrt(a);
    case Op::reciprocal:
      return 1 / a;
    case Op::tanh:
      return std::tanh(a);
    case Op::sigmoid:
      return 1 / (1 + std::exp(-a));
    case Op::relu:
      return std::isnan(a) ? a : std::fmax(a, 0.0);
    case Op::abs:
      return std::fabs(a);
    case Op::floor:
      return std::floor(a);
    case Op::ceil:
      return std::ceil(a);
    case Op::sin:
      return std::sin(a);
    case Op::cos:
      return std::cos(a);
    case Op::to_float:
      return a;
    case Op::to_int:
      return std::trunc(a);
    case Op::erf:
      return std::erf(a);
    case Op::sign:
      return (a > 0) - (a < 0);
    case Op::invalid:
      return kNan;
  }
  return kNan;
}

}  // namespace

double apply(Op op, double a, double b) { return apply_one(op, a, b); }

// With the operator known, a compiler makes a loop of it: masks are evaluated for millions of
// elements.
void apply(Op op, const double* a, const double* b, int64_t count, double* out) {
  const auto each = [&](const auto& of) {
    for (int64_t n = 0; n < count; ++n) out[n] = of(a[n], b[n]);
  };
  switch (op) {
#define EACH(OP) \
  case Op::OP:   \
    return each([](double x, double y) { return apply_one(Op::OP, x, y); });
    EACH(add)
    EACH(subtract)
    EACH(multiply)
    EACH(divide)
    EACH(floor_divide)
    EACH(modulo)
    EACH(minimum)
    EACH(maximum)
    EACH(equal)
    EACH(not_equal)
    EACH(less)
    EACH(less_equal)
    EACH(logical_and)
    EACH(logical_or)
    EACH(logical_not)
    EACH(negate)
    EACH(abs)
    EACH(to_float)
#undef EACH
    default:
      each([op](double x, double y) { return apply_one(op, x, y); });
  }
}

double fold_unary(const std::string& op, double a) { return apply(op_of(Kind::unary, op), a, 0); }
double fold_binary(const std::string& op, double a, double b) {
  return apply(op_of(Kind::binary, op), a, b);
}

}  // namespace kw::spec
