// kw::real of a build with -DKW_EXACT: no float, but an element of a small algebra, in which a sum has
// one value in any order and with any tiles. What is computed then tells whether every element of
// every tile came to its place and was used once: bit for bit the executor's (src/num/small_algebra.h
// is the same algebra, written apart), with no tolerance for a layout, a barrier or a mask to hide in.
//
// A number is two residues: modulo p = 65267, which 16-bit storage keeps, and modulo q = (p - 1) / 2,
// both prime, which is the number as an exponent. + - * act on both; exp2(x) is 4^(x mod q) modulo p
// (4 has order q), so exp2(x + y) = exp2(x) exp2(y). Above it a number has no second residue of its
// own: whatever comes from storage, or is an exponential, takes the first, modulo q, for it. A float
// is a fraction with a power of two below, and so has both residues exactly. log2 is the discrete
// logarithm, whose first residue means nothing. Order, and functions of which nothing is used, are
// arbitrary but fixed. -inf, +inf and undefined are three words that are no residues.
//
// The file is plain C++ but for KW_DEVICE: tests/unit/num/small.cpp holds it against src/num.
#pragma once
#ifdef __CUDACC__
#define KW_CALLED static __device__ __noinline__  // else a map of 64 exponentials compiles for a minute
#else
#define KW_CALLED inline
#endif
namespace kw {
struct real;
namespace exact {
constexpr unsigned kP = 65267, kQ = 32633, kGenerator = 4;
constexpr unsigned kMinusInfinity = 0xffffffffu, kPlusInfinity = 0xfffffffeu, kUndefined = 0xfffffffdu;

KW_DEVICE unsigned join(unsigned p, unsigned q) { return p << 16 | q; }
KW_DEVICE unsigned first(unsigned bits) { return bits >> 16; }
KW_DEVICE unsigned second(unsigned bits) { return bits & 0xffff; }
KW_DEVICE bool special(unsigned bits) { return bits >= kUndefined; }
KW_DEVICE unsigned power(unsigned x, unsigned e, unsigned n) {
  unsigned y = 1;
  for (; e; e >>= 1, x = x * x % n)
    if (e & 1) y = y * x % n;
  return y;
}
// A word of 16-bit storage, or an exponential, as a number.
KW_DEVICE unsigned from_storage(unsigned word) { return join(word % kP, word % kQ); }
// m * 2^e modulo n, m below 2^24.
KW_DEVICE unsigned scaled(unsigned m, int e, unsigned n) {
  return m % n * power(e < 0 ? (n + 1) / 2 : 2, e < 0 ? -e : e, n) % n;
}
KW_DEVICE unsigned negated(unsigned bits) {
  if (bits == kMinusInfinity) return kPlusInfinity;
  if (bits == kPlusInfinity) return kMinusInfinity;
  if (bits == kUndefined) return bits;
  return join((kP - first(bits)) % kP, (kQ - second(bits)) % kQ);
}
KW_CALLED unsigned from_float(float x) {
  const unsigned word = __builtin_bit_cast(unsigned, x), e = word >> 23 & 255, m = word & 0x7fffff;
  const bool negative = word >> 31;
  if (e == 255) return m ? kUndefined : negative ? kMinusInfinity : kPlusInfinity;
  const unsigned mantissa = e ? m | 0x800000 : m;
  const int power_of_2 = e ? int(e) - 150 : -149;
  const unsigned bits = join(scaled(mantissa, power_of_2, kP), scaled(mantissa, power_of_2, kQ));
  return negative ? negated(bits) : bits;
}
KW_DEVICE unsigned from_int(int x) {
  const unsigned size = x < 0 ? 0u - unsigned(x) : unsigned(x), bits = join(size % kP, size % kQ);
  return x < 0 ? negated(bits) : bits;
}
KW_DEVICE unsigned sum(unsigned a, unsigned b) {
  if (special(a) || special(b)) {
    if (a == kUndefined || b == kUndefined || (special(a) && special(b) && a != b)) return kUndefined;
    return special(a) ? a : b;
  }
  return join((first(a) + first(b)) % kP, (second(a) + second(b)) % kQ);
}
// The sign of a residue is unknown: a number counts as positive unless it is -1 or 0.
KW_CALLED unsigned product(unsigned a, unsigned b) {
  if (!special(a) && !special(b))
    return join(first(a) * first(b) % kP, second(a) * second(b) % kQ);
  if (a == kUndefined || b == kUndefined || first(a) == 0 || first(b) == 0) return kUndefined;
  const bool negative_a = a == kMinusInfinity || a == join(kP - 1, kQ - 1);
  const bool negative_b = b == kMinusInfinity || b == join(kP - 1, kQ - 1);
  return negative_a == negative_b ? kPlusInfinity : kMinusInfinity;
}
KW_CALLED unsigned power_of_2(unsigned x) {
  if (x == kMinusInfinity) return 0;
  if (special(x)) return x;
  return from_storage(power(kGenerator, second(x), kP));
}
// The y with 2^y = x or -x.
KW_CALLED unsigned logarithm(unsigned x) {
  if (special(x)) return x == kPlusInfinity ? x : kUndefined;
  if (first(x) == 0) return kMinusInfinity;
  const unsigned square = first(x) * first(x) % kP;
  unsigned y = 0;
  for (unsigned at = 1; at != square; at = at * kGenerator % kP) ++y;
  const unsigned half = y * ((kQ + 1) / 2) % kQ;
  return join(half, half);
}
KW_CALLED unsigned inverse(unsigned x) {
  if (x == kMinusInfinity || x == kPlusInfinity) return 0;
  if (special(x) || first(x) == 0) return kUndefined;
  return join(power(first(x), kP - 2, kP), power(second(x), kQ - 2, kQ));
}
// Fixed, and otherwise nothing: the finaliser of MurmurHash3.
KW_CALLED unsigned arbitrary(unsigned function, unsigned x) {
  if (special(x)) return kUndefined;
  unsigned h = x ^ function * 0x9e3779b9u;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  h ^= h >> 16;
  return join(h % kP, (h ^ h >> 15) % kQ);
}
// -inf lies below all numbers, +inf above.
KW_DEVICE bool less(unsigned a, unsigned b) {
  return a != kUndefined && b != kUndefined && a + 1 < b + 1;
}
}  // namespace exact

struct real {
  unsigned bits;
  real() = default;
  KW_DEVICE real(float x) : bits(exact::from_float(x)) {}
  KW_DEVICE real(int x) : bits(exact::from_int(x)) {}
  static KW_DEVICE real of(unsigned bits) {
    real x;
    x.bits = bits;
    return x;
  }
  static KW_DEVICE real stored(unsigned word) { return of(exact::from_storage(word)); }

  friend KW_DEVICE real operator+(real a, real b) { return of(exact::sum(a.bits, b.bits)); }
  friend KW_DEVICE real operator-(real a) { return of(exact::negated(a.bits)); }
  friend KW_DEVICE real operator-(real a, real b) { return a + -b; }
  friend KW_DEVICE real operator*(real a, real b) { return of(exact::product(a.bits, b.bits)); }
  friend KW_DEVICE real operator/(real a, real b) { return a * of(exact::inverse(b.bits)); }
  KW_DEVICE real& operator+=(real b) { return *this = *this + b; }
  friend KW_DEVICE bool operator==(real a, real b) { return a.bits == b.bits; }
  friend KW_DEVICE bool operator!=(real a, real b) { return a.bits != b.bits; }
  friend KW_DEVICE bool operator<(real a, real b) { return exact::less(a.bits, b.bits); }
  friend KW_DEVICE bool operator>(real a, real b) { return exact::less(b.bits, a.bits); }
  friend KW_DEVICE bool operator<=(real a, real b) { return a == b || a < b; }
  friend KW_DEVICE bool operator>=(real a, real b) { return a == b || a > b; }
};
// For what only converts to a real, a coordinate.
KW_DEVICE real operator+(real a, real b);
KW_DEVICE real operator-(real a, real b);
KW_DEVICE real operator*(real a, real b);
KW_DEVICE real operator/(real a, real b);
KW_DEVICE bool operator<(real a, real b);
KW_DEVICE bool operator>(real a, real b);
KW_DEVICE bool operator<=(real a, real b);
KW_DEVICE bool operator>=(real a, real b);

KW_DEVICE real exp2(real x) { return real::of(exact::power_of_2(x.bits)); }
KW_DEVICE real log2(real x) { return real::of(exact::logarithm(x.bits)); }
KW_DEVICE real reciprocal(real x) { return real::of(exact::inverse(x.bits)); }
KW_DEVICE real tanh(real x) { return real::of(exact::arbitrary(1, x.bits)); }
KW_DEVICE real rsqrt(real x) { return real::of(exact::arbitrary(2, x.bits)); }
// Only stands where arguments get their first values, which are the launcher's to compute: a NaN here.
KW_DEVICE float rsqrt(int) { return __builtin_bit_cast(float, 0x7fffffffu); }
KW_DEVICE real to_bf16(real x) { return x; }
KW_DEVICE real fma(real a, real b, real c) { return a * b + c; }
KW_DEVICE real min(real a, real b) { return b < a ? b : a; }
KW_DEVICE real max(real a, real b) { return a < b ? b : a; }

// Memory: of a real, 16-bit tiles keep the first residue, tensors of floats the whole word.
template <class T> KW_DEVICE real from_memory(const T* x) { return real::stored(x->bits); }
KW_DEVICE real from_memory(const float* x) { return real(*x); }
template <class T> KW_DEVICE real from_scratch(const T& x) { return real::stored(x.bits); }
KW_DEVICE real from_scratch(float x) { return real(x); }
template <class T> KW_DEVICE real from_word(T, unsigned word, int high) {
  return real::stored(word >> 16 * high & 0xffff);
}
KW_DEVICE float to_memory(real x) { return __builtin_bit_cast(float, x.bits); }
namespace ptx {
template <class T> KW_DEVICE unsigned pack(T, real low, real high) {
  return exact::first(low.bits) | exact::first(high.bits) << 16;
}
}  // namespace ptx

}  // namespace kw
