#include "num/exact.h"

#include <algorithm>

#include "num/exact_parts.h"
#include "num/random.h"

namespace kw::exact {

namespace {

// Chains r, q = 2 r + 1, p = 2 q + 1 of primes, all -1 modulo 4 * 2 * 3 * 5 * ... * 31: modulo each
// of them the primes up to 31 are squares. Here q; the largest three with p below 2^61.
constexpr uint64_t kPrimes[Algebra::kChains] = {1152520054290084479, 1152396509028164399,
                                                1151708185426038239};

}  // namespace

std::string opaque_names(uint8_t bits) {
  constexpr const char* kNames[] = {
      "order", "function", "root", "constant", "nested exponential", "logarithm", "branch"};
  std::string text;
  for (int k = 0; k < 7; ++k)
    if (bits >> k & 1) text += (text.empty() ? "" : ", ") + std::string(kNames[k]);
  return text;
}

Algebra::Algebra(int chain, uint64_t seed, int levels)
    : seed_(seed * kChains + chain),
      levels_(levels),
      moduli_{Modulus(2 * kPrimes[chain] + 1), Modulus(kPrimes[chain]),
              Modulus((kPrimes[chain] - 1) / 2)} {
  for (int l = 0; l < kLevels; ++l) {
    const uint64_t any = hash(l, Stream::generator, l);
    generator_[l] = moduli_[l].mul(any, any);  // a square: of order (n - 1) / 2, which is prime
  }
  for (int l = 0; l < 2; ++l) {
    const Modulus& n = moduli_[l];
    uint64_t base = generator_[l];
    for (auto& digits : powers_[l]) {
      digits[0] = n.one();
      for (int d = 1; d < 256; ++d) digits[d] = n.mul(digits[d - 1], base);
      base = n.mul(digits[255], base);
    }
  }
  std::array<uint64_t, kLevels> x;
  for (int l = 0; l < kLevels; ++l) x[l] = l < levels_ ? hash(0, Stream::symbol, l) : 0;
  log2e_ = number(x);
  log2e_.numerator = 1;
  ln2_ = reciprocal(log2e_);
}

// Uniform below the prime but 0, by rejection.
uint64_t Algebra::hash(uint64_t key, uint64_t what, int level) const {
  const Random random(seed_ ^ key * 0x9e3779b97f4a7c15, what * kLevels + level);
  const uint64_t mask = ~uint64_t(0) >> (3 + level);
  for (uint64_t n = key;; ++n)
    if (const uint64_t word = random.word(n) & mask; word && word < prime(level)) return word;
}

Element Algebra::number(std::array<uint64_t, kLevels> x) const {
  Element e;
  e.x = x;
  return e;
}

Element Algebra::draw(uint64_t name) const {
  Element e;
  for (int l = 0; l < levels_; ++l) e.x[l] = hash(name, Stream::input, l);
  e.numerator = 1;
  return e;
}

Element Algebra::of_integer(int64_t value) const {
  constexpr uint64_t kIntegers = uint64_t{1} << 62;  // names that no input has
  return draws_integers_ ? draw(kIntegers + static_cast<uint32_t>(value)) : integer(value);
}

Element Algebra::integer(int64_t value) const {
  Element e;
  for (int l = 0; l < levels_; ++l) {
    e.x[l] = moduli_[l].into(static_cast<uint64_t>(value < 0 ? -value : value));
    if (value < 0) e.x[l] = moduli_[l].negate(e.x[l]);
  }
  return e;
}

Element Algebra::minus_infinity() const {
  Element e;
  e.kind = Kind::minus_infinity;
  return e;
}

Element Algebra::undefined(const Element& a, const Element& b) const {
  Element e;
  e.kind = Kind::undefined;
  depend(e, a, b);
  return e;
}

// ---- ring operations
Element Algebra::add(const Element& a, const Element& b) const {
  if (a.kind == Kind::undefined || b.kind == Kind::undefined) return undefined(a, b);
  if (is_infinite(a) || is_infinite(b)) {
    if (is_infinite(a) && is_infinite(b) && a.kind != b.kind) return undefined(a, b);
    return is_infinite(a) ? a : b;
  }
  if (a.kind == Kind::logarithm || b.kind == Kind::logarithm) return log_sum(a, b);
  Element e;
  for (int l = 0; l < levels_; ++l) e.x[l] = moduli_[l].add(a.x[l], b.x[l]);
  depend(e, a, b);
  if (a.denominator || b.denominator) {
    e.numerator = saturating<uint16_t>(
        std::max(uint64_t(a.numerator) + b.denominator, uint64_t(b.numerator) + a.denominator));
    e.denominator = saturating<uint16_t>(uint64_t(a.denominator) + b.denominator);
  } else {
    e.numerator = std::max(a.numerator, b.numerator);
  }
  return e;
}

Element Algebra::mul(const Element& a, const Element& b) const {
  if (a.kind == Kind::undefined || b.kind == Kind::undefined) return undefined(a, b);
  if (is_infinite(a) || is_infinite(b)) {
    const Element& infinite = is_infinite(a) ? a : b;
    const Element& other = is_infinite(a) ? b : a;
    if (other.kind == Kind::number && other.x[0] == 0) return undefined(a, b);
    const bool flips = other.kind == Kind::minus_infinity ||
                       (other.kind == Kind::number && other.x == integer(-1).x);
    Element e = infinite;
    if (flips) e.kind = opposite(e.kind);
    return e;
  }
  if (a.kind == Kind::logarithm && b.kind == Kind::logarithm) return mul(plain(a), plain(b));
  if (a.kind == Kind::logarithm) return log_multiple(a, b);
  if (b.kind == Kind::logarithm) return log_multiple(b, a);
  Element e;
  for (int l = 0; l < levels_; ++l) e.x[l] = moduli_[l].mul(a.x[l], b.x[l]);
  depend(e, a, b);
  e.numerator = saturating<uint16_t>(uint64_t(a.numerator) + b.numerator);
  e.denominator = saturating<uint16_t>(uint64_t(a.denominator) + b.denominator);
  return e;
}

Element Algebra::negate(const Element& a) const {
  if (a.kind == Kind::logarithm) return log_multiple(a, integer(-1));
  Element e = a;
  e.kind = opposite(a.kind);
  for (int l = 0; l < levels_; ++l) e.x[l] = moduli_[l].negate(a.x[l]);
  return e;
}

namespace {

// Of a row's elements one divisor is asked for again and again.
uint64_t inverse_of(const Modulus& n, uint64_t x) {
  struct Known {
    uint64_t n = 0, x = 0, inverse = 0;
  };
  thread_local std::array<Known, 256> known;
  Known& k = known[x % known.size()];
  if (k.n != n.n() || k.x != x) k = {n.n(), x, n.inverse(x)};
  return k.inverse;
}

}  // namespace

Element Algebra::reciprocal(const Element& a) const {
  if (a.kind == Kind::undefined) return a;
  if (is_infinite(a)) return integer(0);
  if (a.kind == Kind::logarithm) return reciprocal(plain(a));
  if (a.x[0] == 0) return undefined(a, a);
  Element e = a;
  // Another level is 0 by a chance of 2^-59 and then stays so.
  for (int l = 0; l < levels_; ++l) e.x[l] = inverse_of(moduli_[l], a.x[l]);
  std::swap(e.numerator, e.denominator);
  return e;
}

// ---- exponentials
uint64_t Algebra::power_of(int level, uint64_t exponent) const {
  const Modulus& n = moduli_[level];
  uint64_t result = n.one();
  for (int k = 0; exponent; ++k, exponent >>= 8)
    result = n.mul(result, powers_[level][k][exponent & 255]);
  return result;
}

Element Algebra::exp2(const Element& a) const {
  Element e;
  depend(e, a, a);
  e.exponentials = a.exponentials;
  switch (a.kind) {
    case Kind::undefined:
      return a;
    case Kind::plus_infinity:
      e.kind = Kind::plus_infinity;
      return e;
    case Kind::minus_infinity:
      return e;
    case Kind::number:
      e.x[0] = power_of(0, moduli_[1].from(a.x[1]));
      e.opaque[0] = a.opaque[1];
      if (levels_ > 2) {
        e.x[1] = power_of(1, moduli_[2].from(a.x[2]));
        e.opaque[1] = a.opaque[2];
      } else {
        e.opaque[1] = e.opaque[0] | Opaque::nested;
      }
      break;
    case Kind::logarithm: {
      const uint64_t c = a.x[2], one = moduli_[1].one();
      const uint64_t power = power_of(0, moduli_[1].from(a.x[1]));
      if (c == one || c == moduli_[1].negate(one)) {
        e.x[0] = moduli_[0].mul(power, c == one ? a.x[0] : moduli_[0].inverse(a.x[0]));
      } else {
        // The one of w and -w that is a square has powers modulo q. Which one a power of 1 is, is
        // not known, so a difference says nothing.
        const Modulus &p = moduli_[0], &q = moduli_[1];
        const uint64_t square = p.root(p.mul(a.x[0], a.x[0]));
        e.x[0] = p.mul(power, p.power(square, q.from(c)));
        e.opaque[0] |= Opaque::logarithms;
      }
      if (levels_ > 2) e.x[1] = hash(e.x[0], Stream::exponential, 1);
      e.opaque[1] = e.opaque[0] | Opaque::nested;
      e.numerator = a.numerator;
      e.denominator = a.denominator;
      break;
    }
  }
  if (levels_ > 2) e.x[2] = hash(e.x[0], Stream::exponential, 2);
  e.opaque[2] = e.opaque[1] | Opaque::nested;
  e.exponent_degree =
      std::max(a.exponent_degree, saturating<uint16_t>(uint64_t(a.numerator) + a.denominator));
  e.numerator = saturating<uint16_t>(uint64_t(e.numerator) + 1);
  e.exponentials = saturating<uint32_t>(uint64_t(a.exponentials) + 1);
  return e;
}

Element Algebra::tanh(const Element& a) const {
  const Element twice = mul(a, integer(2));
  return sub(mul(integer(2), sigmoid(twice)), integer(1));
}

Element Algebra::sigmoid(const Element& a) const {
  return reciprocal(add(integer(1), exp(negate(a))));
}

// With the exponentials K of both as variables of their own, the difference of the quotients,
// multiplied out, is a polynomial of degree d in them and the inputs. It vanishes with probability
// at most d / p (Schwartz, Zippel), or two exponents that differ as polynomials agree: at most
// their degree / r for each of the K (K - 1) / 2 pairs.
double Algebra::error_bound(const Element& a, const Element& b) const {
  const double degree =
      std::max(double(a.numerator) + b.denominator, double(b.numerator) + a.denominator);
  const double count = double(a.exponentials) + b.exponentials;
  const double exponents = std::max(a.exponent_degree, b.exponent_degree);
  const bool log = a.kind == Kind::logarithm || b.kind == Kind::logarithm;
  const double bound = (log ? 2 : 1) * degree + exponents * count * (count - 1) / 2;
  return std::min(1.0, std::max(bound, 1.0) / static_cast<double>(prime(levels_ - 1)));
}

}  // namespace kw::exact
