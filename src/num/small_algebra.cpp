#include "num/small_algebra.h"

#include <bit>
#include <cmath>
#include <vector>

#include "num/random.h"

namespace kw::exact {
namespace {

constexpr uint64_t kP = SmallAlgebra::kP, kQ = SmallAlgebra::kQ;
constexpr uint64_t kFp32 = uint64_t(1) << 32;  // marks the name of an fp32 number
constexpr uint64_t kByChance = uint64_t(1) << 63;

Element pair(uint64_t x, uint64_t exponent) {
  Element e;
  e.x = {x % kP, exponent % kQ, 0};
  return e;
}

Element of_kind(Kind kind) {
  Element e;
  e.kind = kind;
  return e;
}

uint64_t power(uint64_t x, uint64_t exponent, uint64_t n) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, x = x * x % n)
    if (exponent & 1) result = result * x % n;
  return result;
}

// Of a number modulo n, times a power of two.
uint64_t shifted(uint64_t x, int by, uint64_t n) {
  const uint64_t two = by < 0 ? (n + 1) / 2 : 2;
  return x % n * power(two, static_cast<uint64_t>(std::abs(by)), n) % n;
}

bool is_number(const Element& a) { return a.kind == Kind::number; }
bool is_minus_one(const Element& a) { return is_number(a) && a.x[0] == kP - 1 && a.x[1] == kQ - 1; }
bool counts_as_negative(const Element& a) {
  return a.kind == Kind::minus_infinity || is_minus_one(a);
}

// A total order: -inf, the numbers by their words, +inf.
uint64_t rank(const Element& a) {
  if (a.kind == Kind::minus_infinity) return 0;
  return is_number(a) ? 1 + (a.x[0] << 16 | a.x[1]) : uint64_t(1) << 40;
}

}  // namespace

double SmallAlgebra::fp32(float value) {
  return static_cast<double>(kFp32 | std::bit_cast<uint32_t>(value));
}

Element SmallAlgebra::draw(uint64_t name) const {
  if (name & kByChance) {
    const uint64_t word = Random(name, 0).word(0);
    return pair(word >> 32, word & 0xffffffff);
  }
  if (name & kFp32) return constant(std::bit_cast<float>(static_cast<uint32_t>(name)));
  return pair(name, name);
}

Element SmallAlgebra::integer(int64_t value) const {
  const int64_t p = kP, q = kQ;
  return pair((value % p + p) % p, (value % q + q) % q);
}

Element SmallAlgebra::constant(double value) const {
  const float rounded = static_cast<float>(value);
  if (std::isnan(rounded)) return of_kind(Kind::undefined);
  if (std::isinf(rounded)) return of_kind(rounded < 0 ? Kind::minus_infinity : Kind::plus_infinity);
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(rounded), &exponent);
  const int64_t mantissa = std::llround(std::ldexp(fraction, 24));
  const uint64_t size = static_cast<uint64_t>(std::abs(mantissa));
  const Element positive = pair(shifted(size, exponent - 24, kP), shifted(size, exponent - 24, kQ));
  return mantissa < 0 ? negate(positive) : positive;
}

Element SmallAlgebra::add(const Element& a, const Element& b) const {
  if (is_number(a) && is_number(b)) return pair(a.x[0] + b.x[0], a.x[1] + b.x[1]);
  if (a.kind == Kind::undefined || b.kind == Kind::undefined) return of_kind(Kind::undefined);
  if (is_number(a)) return b;
  if (is_number(b) || a.kind == b.kind) return a;
  return of_kind(Kind::undefined);
}

Element SmallAlgebra::mul(const Element& a, const Element& b) const {
  if (is_number(a) && is_number(b)) return pair(a.x[0] * b.x[0], a.x[1] * b.x[1]);
  const auto nothing = [](const Element& e) {
    return e.kind == Kind::undefined || (is_number(e) && e.x[0] == 0);
  };
  if (nothing(a) || nothing(b)) return of_kind(Kind::undefined);
  return of_kind(counts_as_negative(a) == counts_as_negative(b) ? Kind::plus_infinity
                                                                : Kind::minus_infinity);
}

Element SmallAlgebra::negate(const Element& a) const {
  if (is_number(a)) return pair(kP - a.x[0], kQ - a.x[1]);
  if (a.kind == Kind::undefined) return a;
  return of_kind(a.kind == Kind::minus_infinity ? Kind::plus_infinity : Kind::minus_infinity);
}

Element SmallAlgebra::reciprocal(const Element& a) const {
  if (a.kind == Kind::minus_infinity || a.kind == Kind::plus_infinity) return pair(0, 0);
  if (!is_number(a) || a.x[0] == 0) return of_kind(Kind::undefined);
  return pair(power(a.x[0], kP - 2, kP), power(a.x[1], kQ - 2, kQ));
}

Element SmallAlgebra::exp2(const Element& a) const {
  if (a.kind == Kind::minus_infinity) return pair(0, 0);
  if (!is_number(a)) return a;
  const uint64_t x = power(kGenerator, a.x[1], kP);
  return pair(x, x);
}

// Half the discrete logarithm of the square, which always has one.
Element SmallAlgebra::log2(const Element& a) const {
  if (a.kind == Kind::plus_infinity) return a;
  if (!is_number(a)) return of_kind(Kind::undefined);
  if (a.x[0] == 0) return of_kind(Kind::minus_infinity);
  static const std::vector<uint16_t> logarithms = [] {
    std::vector<uint16_t> table(kP);
    uint64_t x = 1;
    for (uint64_t y = 0; y < kQ; ++y, x = x * kGenerator % kP) table[x] = uint16_t(y);
    return table;
  }();
  const uint64_t half = logarithms[a.x[0] * a.x[0] % kP] * ((kQ + 1) / 2) % kQ;
  return pair(half, half);
}

Element SmallAlgebra::max(const Element& a, const Element& b) const {
  return less(a, b).holds ? b : a;
}
Element SmallAlgebra::min(const Element& a, const Element& b) const {
  return less(b, a).holds ? b : a;
}

Algebra::Truth SmallAlgebra::equal(const Element& a, const Element& b) const {
  return {a.kind == b.kind && (!is_number(a) || a.x == b.x), 0};
}

Algebra::Truth SmallAlgebra::less(const Element& a, const Element& b) const {
  if (a.kind == Kind::undefined || b.kind == Kind::undefined) return {false, 0};
  return {rank(a) < rank(b), 0};
}

void SmallAlgebra::add_product(int rows, int depth, int columns, const Element* a, const Element* b,
                               bool transposed, Element* c) const {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      Element& out = c[size_t(i) * columns + j];
      uint64_t sum[2] = {out.x[0], out.x[1]};
      for (int k = 0; k < depth; ++k) {
        const Element& left = a[size_t(i) * depth + k];
        const Element& right = b[transposed ? size_t(j) * depth + k : size_t(k) * columns + j];
        for (int l = 0; l < 2; ++l) sum[l] += left.x[l] * right.x[l];
      }
      out.x = {sum[0] % kP, sum[1] % kQ, 0};
    }
}

// The first residue, which is then taken for both.
Element SmallAlgebra::stored(const Element& a) const { return draw(bits(a) >> 16); }

Element SmallAlgebra::arbitrary(uint32_t function, const Element& a) const {
  if (!is_number(a)) return of_kind(Kind::undefined);
  uint32_t h = bits(a) ^ function * 0x9e3779b9u;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  h ^= h >> 16;
  return pair(h, h ^ h >> 15);
}

uint32_t SmallAlgebra::bits(const Element& a) {
  if (a.kind == Kind::minus_infinity) return 0xffffffffu;
  if (a.kind == Kind::plus_infinity) return 0xfffffffeu;
  if (!is_number(a)) return 0xfffffffdu;
  return static_cast<uint32_t>(a.x[0] << 16 | a.x[1]);
}

Element SmallAlgebra::of(uint32_t bits) {
  if (bits >= 0xfffffffdu)
    return of_kind(bits == 0xffffffffu   ? Kind::minus_infinity
                   : bits == 0xfffffffeu ? Kind::plus_infinity
                                         : Kind::undefined);
  return pair(bits >> 16, bits & 0xffff);
}

}  // namespace kw::exact
