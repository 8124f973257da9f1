// Logarithms, roots, order, comparisons, and what nothing is known of.
#include <algorithm>

#include "num/exact_parts.h"

namespace kw::exact {

// ---- logarithms: x = (w, y, c) is c log2(w) + y
Element Algebra::log2(const Element& a) const {
  if (a.kind == Kind::undefined || a.kind == Kind::minus_infinity) return undefined(a, a);
  if (a.kind == Kind::plus_infinity) return a;
  if (a.kind == Kind::logarithm) return log2(plain(a));
  Element e = a;
  if (a.x[0] == 0) {
    e.kind = Kind::minus_infinity;
    return e;
  }
  e.kind = Kind::logarithm;
  e.x = {a.x[0], 0, moduli_[1].one()};
  e.opaque = {a.opaque[0], a.opaque[0], a.opaque[0]};
  return e;
}

Element Algebra::log_sum(const Element& a, const Element& b) const {
  const Modulus& q = moduli_[1];
  const Element& log = a.kind == Kind::logarithm ? a : b;
  const Element& other = a.kind == Kind::logarithm ? b : a;
  Element e = log;
  depend(e, a, b);
  const uint8_t opaque = log.opaque[0] | other.opaque[other.kind == Kind::number ? 1 : 0];
  e.opaque = {opaque, opaque, opaque};
  e.x[1] = q.add(log.x[1], other.x[1]);
  if (other.kind == Kind::number) {
    e.exponent_degree = std::max(
        e.exponent_degree, saturating<uint16_t>(uint64_t(other.numerator) + other.denominator));
    e.exponentials = saturating<uint32_t>(uint64_t(e.exponentials) + 1);
    return e;
  }
  const bool same = a.x[2] == b.x[2];
  if (!same && a.x[2] != q.negate(b.x[2])) {  // squares have powers modulo q
    const auto squared = [&](const Element& x) {
      return moduli_[0].power(moduli_[0].mul(x.x[0], x.x[0]), q.from(x.x[2]));
    };
    e.x[0] = moduli_[0].mul(squared(log), squared(other));
    e.x[2] = q.into((q.n() + 1) / 2);
    e.numerator = saturating<uint16_t>(uint64_t(log.numerator) + log.denominator + other.numerator +
                                       other.denominator);
    e.exponentials = saturating<uint32_t>(uint64_t(e.exponentials) + 2);
    return e;
  }
  const uint64_t w = same ? other.x[0] : moduli_[0].inverse(other.x[0]);
  e.x[0] = moduli_[0].mul(log.x[0], w);
  const uint64_t up = same ? other.numerator : other.denominator;
  const uint64_t down = same ? other.denominator : other.numerator;
  e.numerator = saturating<uint16_t>(log.numerator + up);
  e.denominator = saturating<uint16_t>(log.denominator + down);
  return e;
}

Element Algebra::log_multiple(const Element& log, const Element& by) const {
  if (by.x[1] == 0 && by.x[0] == 0) return integer(0);
  if (by.x[1] == 0) {  // by chance, or an exponential that has none of two levels
    Element e = mul(plain(log), by);
    e.opaque[0] |= by.opaque[1];
    return e;
  }
  Element e = log;
  depend(e, log, by);
  const uint8_t opaque = log.opaque[0] | by.opaque[1];
  e.opaque = {opaque, opaque, opaque};
  e.x[1] = moduli_[1].mul(log.x[1], by.x[1]);
  e.x[2] = moduli_[1].mul(log.x[2], by.x[1]);
  return e;
}

// (2^x)^2 of a logarithm: the square makes multiples of w modulo q one.
uint64_t Algebra::residue(const Element& a) const {
  if (a.kind != Kind::logarithm) return a.x[0];
  const Modulus& p = moduli_[0];
  const uint64_t w = p.power(a.x[0], moduli_[1].from(a.x[2]));
  const uint64_t power = p.mul(w, power_of(0, moduli_[1].from(a.x[1])));
  return p.mul(power, power);
}

Element Algebra::plain(const Element& a) const {
  if (a.kind != Kind::logarithm) return a;
  Element e = a;
  e.kind = Kind::number;
  const uint64_t key = residue(a);
  for (int l = 0; l < levels_; ++l) {
    e.x[l] = hash(key, Stream::log_power, l);
    e.opaque[l] = a.opaque[0] | Opaque::logarithms;
  }
  e.numerator = 1;
  e.denominator = 0;
  return e;
}

// ---- roots
Element Algebra::sqrt(const Element& a) const {
  if (a.kind == Kind::undefined || a.kind == Kind::plus_infinity) return a;
  if (a.kind == Kind::minus_infinity) return undefined(a, a);
  if (a.kind == Kind::logarithm) return sqrt(plain(a));
  uint64_t rest = moduli_[0].from(a.x[0]);
  Element e;
  depend(e, a, a);
  e.exponentials = a.exponentials;
  if (rest == 0) return e;
  for (int l = 0; l < levels_; ++l) e.x[l] = moduli_[l].one();
  if (rest < (uint64_t(1) << 31))
    for (uint64_t prime : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31})
      for (; rest % prime == 0; rest /= prime)
        for (int l = 0; l < levels_; ++l)
          e.x[l] = moduli_[l].mul(e.x[l], moduli_[l].root(moduli_[l].into(prime)));
  if (rest == 1) return e;
  for (int l = 0; l < levels_; ++l) {
    e.x[l] = hash(a.x[0], Stream::square_root, l);
    e.opaque[l] |= a.opaque[0] | Opaque::root;
  }
  e.numerator = 1;
  return e;
}

// ---- order, comparisons, and what nothing is known of
// The integer that a number is at every level: then it is that one, as another formula's residues
// are so small, and alike, with probability 2^-80.
std::optional<int64_t> Algebra::small_integer(const Element& a) const {
  if (a.kind != Kind::number) return std::nullopt;
  std::optional<int64_t> value;
  for (int l = 0; l < levels_; ++l) {
    const uint64_t x = moduli_[l].from(a.x[l]), minus = moduli_[l].n() - x;
    constexpr uint64_t kBelow = uint64_t(1) << 31;
    if (x >= kBelow && minus >= kBelow) return std::nullopt;
    const int64_t here = x < kBelow ? int64_t(x) : -int64_t(minus);
    if (value && *value != here) return std::nullopt;
    value = here;
  }
  return value;
}

uint8_t Algebra::order_of(const Element& a, const Element& b) const {
  return small_integer(a) && small_integer(b) ? 0 : Opaque::order;
}

// Zero is in the middle, so that as many numbers are above it as below, and integers around it.
uint64_t Algebra::order_key(const Element& a) const {
  if (const std::optional<int64_t> n = small_integer(a)) return prime(0) / 2 + *n;
  return hash(residue(a), Stream::ordering, 0);
}

bool Algebra::above(const Element& a, const Element& b) const {
  const uint64_t x = order_key(a), y = order_key(b);
  return x != y ? x > y : residue(a) > residue(b);
}

Element Algebra::max(const Element& a, const Element& b) const {
  // As fmax: what is undefined loses. -inf and +inf have their places.
  if (a.kind == Kind::undefined || b.kind == Kind::plus_infinity) return b;
  if (b.kind == Kind::undefined || a.kind == Kind::plus_infinity) return a;
  if (a.kind == Kind::minus_infinity) return b;
  if (b.kind == Kind::minus_infinity) return a;
  if (a.kind == b.kind && a.x == b.x) return a;
  Element e = above(a, b) ? a : b;
  depend(e, a, b);
  for (uint8_t& bits : e.opaque) bits |= a.opaque[0] | b.opaque[0] | order_of(a, b);
  return e;
}

Element Algebra::min(const Element& a, const Element& b) const {
  return negate(max(negate(a), negate(b)));
}

Element Algebra::opaque(uint64_t function, const Element& a) const {
  if (a.kind == Kind::undefined) return a;
  Element e;
  depend(e, a, a);
  e.exponentials = a.exponentials;
  const uint64_t key = residue(a) + static_cast<uint64_t>(a.kind);
  for (int l = 0; l < levels_; ++l) {
    e.x[l] = hash(key, kFunctions + function, l);
    e.opaque[l] = a.opaque[0] | Opaque::function;
  }
  e.numerator = 1;
  return e;
}

Algebra::Truth Algebra::equal(const Element& a, const Element& b) const {
  const uint8_t opaque = a.opaque[0] | b.opaque[0];
  const bool log = a.kind == Kind::logarithm || b.kind == Kind::logarithm;
  if (log && (a.kind == Kind::number || b.kind == Kind::number)) {
    const Element& number = a.kind == Kind::number ? a : b;
    const uint64_t power = power_of(0, moduli_[1].from(number.x[1]));
    const bool same = residue(a.kind == Kind::number ? b : a) == moduli_[0].mul(power, power);
    return {same, uint8_t(opaque | number.opaque[1])};
  }
  if (a.kind != b.kind) return {false, opaque};
  const bool number = a.kind == Kind::number || a.kind == Kind::logarithm;
  return {!number || residue(a) == residue(b), opaque};
}

Algebra::Truth Algebra::less(const Element& a, const Element& b) const {
  const uint8_t opaque = a.opaque[0] | b.opaque[0];
  if (a.kind == Kind::undefined || b.kind == Kind::undefined) return {false, opaque};
  if (is_infinite(a) || is_infinite(b))
    return {a.kind != b.kind && (a.kind == Kind::minus_infinity || b.kind == Kind::plus_infinity),
            opaque};
  if (equal(a, b).holds) return {false, opaque};
  return {above(b, a), uint8_t(opaque | order_of(a, b))};
}

}  // namespace kw::exact
