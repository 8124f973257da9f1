// Constants of programs and of specifications as elements.
//
// A program's text has fp32 literals, a traced function fp64 ones, and a compiler folds products:
// 0.088388348 may have been 1 / sqrt(128), 0.0017677669 the same divided by 50. Both sides round to
// fp32 first and then look for the number that was meant: an integer or a fraction of a power of
// two, a decimal of at most five digits, or n / d * sqrt(m) * log2e^k with the least n d m. A
// number without meaning is taken for such a one by 3 in 1000 (a test counts); it is then
// 2^-23 off, which the values reading covers.
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "num/exact.h"

namespace kw::exact {

namespace {

struct Fraction {
  uint64_t n = 0, d = 1;
};

// A short fraction of a power of two, or a decimal of at most five digits.
std::optional<Fraction> as_written(float x) {
  int exponent = 0;
  float mantissa = std::frexp(x, &exponent) * 0x1p24f;
  uint64_t bits = static_cast<uint64_t>(mantissa);
  exponent -= 24;
  while (bits % 2 == 0) bits /= 2, ++exponent;
  if (exponent >= 0 && exponent < 38) return Fraction{bits << exponent, 1};
  if (exponent < 0 && bits < 4096 && exponent > -60)
    return Fraction{bits, uint64_t(1) << -exponent};
  char buffer[32];  // the shortest digits that read back as x
  const auto end = std::to_chars(buffer, buffer + 32, x, std::chars_format::scientific).ptr;
  const std::string text(buffer, end);
  const size_t e = text.find('e');
  std::string digits;
  for (char c : text.substr(0, e))
    if (c != '.') digits += c;
  int power = std::atoi(text.c_str() + e + 1) - int(digits.size()) + 1;
  if (digits.size() > 5 || power > 12 || power < -18) return std::nullopt;
  Fraction f{std::strtoull(digits.c_str(), nullptr, 10), 1};
  for (; power > 0; --power) f.n *= 10;
  for (; power < 0; ++power) f.d *= 10;
  return f;
}

// The first convergent of x's continued fraction within 2^-23; none that is short.
std::optional<Fraction> short_fraction(double x, uint64_t limit) {
  double rest = x;
  uint64_t n0 = 1, d0 = 0, n1 = static_cast<uint64_t>(rest), d1 = 1;
  for (int k = 0; k < 20; ++k) {
    if (n1 && n1 * d1 > limit) return std::nullopt;
    if (std::fabs(double(n1) / double(d1) - x) <= x * 0x1p-23) return Fraction{n1, d1};
    const double part = rest - std::floor(rest);
    if (part < 1e-12) return std::nullopt;
    rest = 1 / part;
    if (rest > double(limit)) return std::nullopt;
    const uint64_t a = static_cast<uint64_t>(rest), n = a * n1 + n0, d = a * d1 + d0;
    n0 = n1, d0 = d1, n1 = n, d1 = d;
  }
  return std::nullopt;
}

struct Meant {
  Fraction f;
  int root = 1, log2e = 0;
};

std::optional<Meant> recognised(float x) {
  if (const auto f = as_written(x)) return Meant{*f};
  constexpr double kLog2e = 1.4426950408889634;
  std::optional<Meant> best;
  uint64_t limit = 2048;
  for (int k : {0, 1, -1})
    for (int m : {1, 2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19, 21, 22, 23, 26, 29, 30, 31}) {
      const uint64_t weight = m * (k ? 4 : 1);
      const auto f = short_fraction(x / std::sqrt(m) / std::pow(kLog2e, k), limit / weight);
      if (!f) continue;
      best = Meant{*f, m, k};
      limit = f->n * f->d * weight - 1;
    }
  return best;
}

}  // namespace

Element Algebra::constant(double value) const {
  if (std::isnan(value)) return undefined({}, {});
  const float x = static_cast<float>(std::fabs(value));
  Element e;
  if (std::isinf(x))
    e.kind = Kind::plus_infinity;
  else if (x != 0) {
    const std::optional<Meant> meant = recognised(x);
    int exponent = 0;
    const Fraction f = meant ? meant->f : Fraction{uint64_t(std::frexp(x, &exponent) * 0x1p24f), 1};
    e = div(integer(int64_t(f.n)), integer(int64_t(f.d)));
    if (meant && meant->root > 1) e = mul(e, sqrt(integer(meant->root)));
    if (meant && meant->log2e) e = mul(e, meant->log2e > 0 ? log2e_ : ln2_);
    if (!meant) {
      const Element two = exponent > 24 ? integer(2) : reciprocal(integer(2));
      for (int k = std::abs(exponent - 24); k > 0; --k) e = mul(e, two);
      e.opaque = {Opaque::constant, Opaque::constant, Opaque::constant};
    }
  }
  return std::signbit(value) ? negate(e) : e;
}

}  // namespace kw::exact
