// The arithmetic of TL: fp32 with one rounding an operation, integers that floor.
//
// Values are held in fp64. For + - * / and a square root of fp32 operands, rounding the fp64 result
// to fp32 equals rounding once (53 >= 2 * 24 + 2 bits; Figueroa, "When is double rounding
// innocuous?", 1995); fma is not in that list and uses the C library's fmaf. exp2, log2 and tanh
// are the C library's fp64 functions rounded to fp32: correctly rounded but for ties that no input
// of ours can tell.
#include "exec/arithmetic.h"

#include <cmath>
#include <map>
#include <numeric>

#include "num/dtype.h"
#include "tl/scope/functions.h"

namespace kw::exec {

std::optional<Fn> function_named(std::string_view name, size_t operands) {
  static const std::map<std::string_view, Fn> two = {
      {"+", Fn::add},           {"-", Fn::sub},         {"*", Fn::mul},
      {"/", Fn::divide},        {"//", Fn::floor_div},  {"%", Fn::floor_mod},
      {"==", Fn::equal},        {"!=", Fn::differ},     {"<", Fn::less},
      {"<=", Fn::less_equal},   {">", Fn::greater},     {">=", Fn::greater_equal},
      {"and", Fn::logical_and}, {"or", Fn::logical_or}, {"ceil_div", Fn::ceil_div},
      {"min", Fn::min},         {"max", Fn::max},       {"<<", Fn::shift_left},
      {">>", Fn::shift_right},  {"&", Fn::bit_and},     {"|", Fn::bit_or},
      {"^", Fn::bit_xor}};
  static const std::map<std::string_view, Fn> one = {
      {"-", Fn::negate},      {"not", Fn::logical_not},
      {"abs", Fn::abs},       {"exp2", Fn::exp2},
      {"log2", Fn::log2},     {"tanh", Fn::tanh},
      {"rsqrt", Fn::rsqrt},   {"to_bf16", Fn::to_bf16},
      {"f32", Fn::to_real},   {"reciprocal", Fn::reciprocal},
      {"float", Fn::to_real}, {"drawn", Fn::to_drawn}};
  static const std::map<std::string_view, Fn> three = {{"fma", Fn::fma}, {"where", Fn::where}};
  const auto& table = operands == 1 ? one : operands == 2 ? two : three;
  const auto it = table.find(name);
  if (it == table.end()) return std::nullopt;
  return it->second;
}

bool is_comparison(Fn fn) { return fn >= Fn::equal && fn <= Fn::greater_equal; }

Type result_type(Fn fn, const Type* t) {
  auto number = [](Type x) { return x == Type::integer || x == Type::real; };
  auto joined = [&](Type a, Type b) {
    if (!number(a) || !number(b)) return Type::none;
    return a == Type::real || b == Type::real ? Type::real : Type::integer;
  };
  auto only = [](bool suits, Type result) { return suits ? result : Type::none; };
  switch (fn) {
    case Fn::add:
    case Fn::sub:
    case Fn::mul:
    case Fn::min:
    case Fn::max:
      return joined(t[0], t[1]);
    case Fn::divide:
      return only(joined(t[0], t[1]) == Type::real, Type::real);
    case Fn::floor_div:
    case Fn::floor_mod:
    case Fn::ceil_div:
    case Fn::shift_left:
    case Fn::shift_right:
    case Fn::bit_and:
    case Fn::bit_or:
    case Fn::bit_xor:
      return only(joined(t[0], t[1]) == Type::integer, Type::integer);
    case Fn::equal:
    case Fn::differ:
    case Fn::less:
    case Fn::less_equal:
    case Fn::greater:
    case Fn::greater_equal:
      return only(joined(t[0], t[1]) != Type::none, Type::boolean);
    case Fn::logical_and:
    case Fn::logical_or:
      return only(t[0] == Type::boolean && t[1] == Type::boolean, Type::boolean);
    case Fn::negate:
    case Fn::abs:
      return only(number(t[0]), t[0]);
    case Fn::logical_not:
      return only(t[0] == Type::boolean, Type::boolean);
    case Fn::exp2:
    case Fn::log2:
    case Fn::tanh:
    case Fn::reciprocal:
    case Fn::rsqrt:
    case Fn::to_real:
    case Fn::to_drawn:
    case Fn::to_bf16:
      return only(number(t[0]), Type::real);
    case Fn::fma:
      return only(number(t[0]) && number(t[1]) && number(t[2]), Type::real);
    case Fn::where:
      return only(t[0] == Type::boolean, t[1] == t[2] ? t[1] : joined(t[1], t[2]));
  }
  return Type::none;
}

namespace {

double rounded(double x) { return static_cast<float>(x); }

template <class F>
void each(int n, const double* a, const double* b, double* out, F f) {
  for (int k = 0; k < n; ++k) out[k] = f(a[k], b[k]);
}

template <class F>
void each(int n, const double* a, double* out, F f) {
  for (int k = 0; k < n; ++k) out[k] = f(a[k]);
}

// The operators whose meaning is the same for integers and reals but for the rounding.
void apply_exact_or_rounded(Fn fn, bool real, int n, const double* a, const double* b,
                            double* out) {
  auto go = [&](auto f) {
    if (real)
      each(n, a, b, out, [f](double x, double y) { return rounded(f(rounded(x), rounded(y))); });
    else
      each(n, a, b, out, f);
  };
  if (fn == Fn::add) go([](double x, double y) { return x + y; });
  if (fn == Fn::sub) go([](double x, double y) { return x - y; });
  if (fn == Fn::mul) go([](double x, double y) { return x * y; });
}

void apply_comparison(Fn fn, int n, const double* a, const double* b, double* out) {
  switch (fn) {
    case Fn::equal:
      return each(n, a, b, out, [](double x, double y) { return double(x == y); });
    case Fn::differ:
      return each(n, a, b, out, [](double x, double y) { return double(x != y); });
    case Fn::less:
      return each(n, a, b, out, [](double x, double y) { return double(x < y); });
    case Fn::less_equal:
      return each(n, a, b, out, [](double x, double y) { return double(x <= y); });
    case Fn::greater:
      return each(n, a, b, out, [](double x, double y) { return double(x > y); });
    default:
      return each(n, a, b, out, [](double x, double y) { return double(x >= y); });
  }
}

// Of the 32 bits of an int. A count that is none of them moves all bits out.
void apply_to_bits(Fn fn, int n, const double* a, const double* b, double* out) {
  auto go = [&](auto f) {
    each(n, a, b, out, [f](double x, double y) {
      return double(f(static_cast<int32_t>(int64_t(x)), static_cast<int32_t>(int64_t(y))));
    });
  };
  const auto within = [](int32_t count) { return count >= 0 && count < 32; };
  if (fn == Fn::bit_and) go([](int32_t x, int32_t y) { return x & y; });
  if (fn == Fn::bit_or) go([](int32_t x, int32_t y) { return x | y; });
  if (fn == Fn::bit_xor) go([](int32_t x, int32_t y) { return x ^ y; });
  if (fn == Fn::shift_left)
    go([&](int32_t x, int32_t y) { return within(y) ? int32_t(uint32_t(x) << y) : 0; });
  if (fn == Fn::shift_right) go([&](int32_t x, int32_t y) { return x >> (within(y) ? y : 31); });
}

void apply_unary(Fn fn, int n, const double* a, double* out) {
  switch (fn) {
    case Fn::negate:
      return each(n, a, out, [](double x) { return -x; });
    case Fn::logical_not:
      return each(n, a, out, [](double x) { return double(x == 0); });
    case Fn::abs:
      return each(n, a, out, [](double x) { return std::fabs(x); });
    case Fn::exp2:
      return each(n, a, out, [](double x) { return rounded(std::exp2(x)); });
    case Fn::log2:
      return each(n, a, out, [](double x) { return rounded(std::log2(x)); });
    case Fn::tanh:
      return each(n, a, out, [](double x) { return rounded(std::tanh(x)); });
    case Fn::reciprocal:
      return each(n, a, out, [](double x) { return rounded(1 / x); });
    case Fn::rsqrt:
      return each(n, a, out, [](double x) { return rounded(1 / std::sqrt(x)); });
    case Fn::to_bf16:
      return each(n, a, out, [](double x) { return round_to(Dtype::bf16, x); });
    default:
      return each(n, a, out, [](double x) { return rounded(x); });  // to_real
  }
}

}  // namespace

void apply(Fn fn, Type result, int n, const double* a, const double* b, const double* c,
           double* out) {
  switch (fn) {
    case Fn::add:
    case Fn::sub:
    case Fn::mul:
      return apply_exact_or_rounded(fn, result == Type::real, n, a, b, out);
    case Fn::divide:
      return each(n, a, b, out, [](double x, double y) { return rounded(x / y); });
    case Fn::floor_div:
      return each(n, a, b, out, [](double x, double y) { return std::floor(x / y); });
    case Fn::floor_mod:
      return each(n, a, b, out, [](double x, double y) { return x - std::floor(x / y) * y; });
    case Fn::ceil_div:
      return each(n, a, b, out, [](double x, double y) { return std::floor((x + y - 1) / y); });
    case Fn::shift_left:
    case Fn::shift_right:
    case Fn::bit_and:
    case Fn::bit_or:
    case Fn::bit_xor:
      return apply_to_bits(fn, n, a, b, out);
    // As fminf and fmaxf: a NaN loses against a number.
    case Fn::min:
      return each(n, a, b, out, [](double x, double y) { return std::fmin(x, y); });
    case Fn::max:
      return each(n, a, b, out, [](double x, double y) { return std::fmax(x, y); });
    case Fn::equal:
    case Fn::differ:
    case Fn::less:
    case Fn::less_equal:
    case Fn::greater:
    case Fn::greater_equal:
      return apply_comparison(fn, n, a, b, out);
    case Fn::logical_and:
      return each(n, a, b, out, [](double x, double y) { return double(x != 0 && y != 0); });
    case Fn::logical_or:
      return each(n, a, b, out, [](double x, double y) { return double(x != 0 || y != 0); });
    case Fn::fma:
      for (int k = 0; k < n; ++k) out[k] = std::fmaf(float(a[k]), float(b[k]), float(c[k]));
      return;
    case Fn::where:
      for (int k = 0; k < n; ++k) out[k] = a[k] != 0 ? b[k] : c[k];
      return;
    default:
      return apply_unary(fn, n, a, out);
  }
}

int64_t heads_at_once(int64_t bytes, int64_t blocks, int64_t group, int64_t heads) {
  int64_t section = 1;
  while (section * 2 * bytes <= tl::kSectionBytes || section * group * blocks < tl::kSectionBlocks)
    section *= 2;
  return std::gcd(section * group, heads);
}

}  // namespace kw::exec
