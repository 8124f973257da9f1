// Arithmetic modulo an odd number below 2^61, in Montgomery's form (Math. Comp. 44, 1985): x is
// held as x * 2^64 mod n, fully reduced, so that equal residues are equal words.
#pragma once
#include <cstdint>

namespace kw {

using Word2 = unsigned __int128;

class Modulus {
 public:
  explicit Modulus(uint64_t n) : n_(n) {
    uint64_t inverse = n;  // of n modulo 2^64, by Newton: right in 3 bits, then 6, 12, 24, 48, 96
    for (int k = 0; k < 5; ++k) inverse *= 2 - n * inverse;
    minus_inverse_ = 0 - inverse;
    one_ = static_cast<uint64_t>((Word2(1) << 64) % n);
    square_ = static_cast<uint64_t>(Word2(one_) * one_ % n);
  }

  uint64_t n() const { return n_; }
  uint64_t one() const { return one_; }

  // x / 2^64 mod n; x below n * 2^64, which the sum of eight products is.
  uint64_t reduce(Word2 x) const {
    const uint64_t m = static_cast<uint64_t>(x) * minus_inverse_;
    const uint64_t t = static_cast<uint64_t>((x + Word2(m) * n_) >> 64);
    return t >= n_ ? t - n_ : t;
  }
  uint64_t into(uint64_t x) const { return reduce(Word2(x % n_) * square_); }
  uint64_t from(uint64_t x) const { return reduce(x); }

  uint64_t add(uint64_t x, uint64_t y) const {
    const uint64_t s = x + y;
    return s >= n_ ? s - n_ : s;
  }
  uint64_t sub(uint64_t x, uint64_t y) const { return x >= y ? x - y : x + n_ - y; }
  uint64_t negate(uint64_t x) const { return x ? n_ - x : 0; }
  uint64_t mul(uint64_t x, uint64_t y) const { return reduce(Word2(x) * y); }

  // The exponent is a plain number.
  uint64_t power(uint64_t x, uint64_t exponent) const {
    uint64_t result = one_;
    for (; exponent; exponent >>= 1, x = mul(x, x))
      if (exponent & 1) result = mul(result, x);
    return result;
  }
  // n must be prime and x not 0. Four bits of the exponent at a time, from its high end.
  uint64_t inverse(uint64_t x) const {
    uint64_t powers[16] = {one_, x};
    for (int k = 2; k < 16; ++k) powers[k] = mul(powers[k - 1], x);
    uint64_t result = one_;
    for (int at = 60; at >= 0; at -= 4) {
      for (int k = 0; k < 4; ++k) result = mul(result, result);
      result = mul(result, powers[(n_ - 2) >> at & 15]);
    }
    return result;
  }
  // A square root of a square, of a prime n = 3 mod 4.
  uint64_t root(uint64_t x) const { return power(x, (n_ + 1) / 4); }

 private:
  uint64_t n_, minus_inverse_, one_, square_;
};

}  // namespace kw
