// An algebra in which formulas that are equal as formulas have equal values, with no rounding.
//
// A real number becomes three residues, modulo primes p = 2 q + 1, q = 2 r + 1 and r:
//   level 0  mod p   what results are compared by
//   level 1  mod q   the number as an exponent
//   level 2  mod r   the number as an exponent of an exponent
// + - * / act on each level, and exp2 shifts: level 0 of exp2(x) is g^(level 1 of x), level 1 is
// h^(level 2 of x), for g of order q modulo p and h of order r modulo q. (Two levels are Mirage's,
// OSDI 2025; the third makes the exponential of a tanh exact. Where nothing nests them two are
// enough, and a third of the work is left out.)
//
// Identities. These hold always, for every seed, so two values that differ are of two formulas that
// no chain of them makes equal:
//   - those of commutative rings, and x * (1 / x) = 1 for x other than 0;
//   - exp2(x + y) = exp2(x) exp2(y) at the levels that are left, exp2(0) = 1, exp2(-inf) = 0;
//   - exp2(log2(x)) = x, log2(x y) = log2(x) + log2(y), and multiples of logarithms; exp(x) is
//     exp2(x * log2e), log(x) is log2(x) * ln2, and ln2 * log2e = 1;
//   - tanh(x) = 2 / (1 + exp2(-2 log2e x)) - 1, hence sigmoid through either; tanh.approx is tanh;
//   - rsqrt(x) sqrt(x) = 1; sqrt(x) sqrt(x) = x for integers whose primes are at most 31.
//   - max and min choose one of their operands by a total order; abs(x) = max(x, -x). Integers
//     below 2^31 are in their own order,
//     and what is chosen between two of them is known.
// Not identities here: what holds for reals because of order (max(2 x, 2 y) = 2 max(x, y), m >= s),
// a third exponential on top of another two, erf and other functions, roots of further numbers.
// These are *opaque*: functions of the operand's residue by a keyed hash, equal on equal operands.
// A value remembers the opaque operations on its path, level by level (an opaque exponent does not
// taint the number itself), and then a difference proves nothing.
//
// Beside numbers: -inf and +inf, with exp2(-inf) = 0, -inf + x = -inf, -inf * x = -inf (signs of
// residues are unknown: x is taken as positive unless it is -1 or 0); logarithms, c log2(w) + y,
// known only by their power, whose sums are log2((w^2)^c (v^2)^d) / 2 where c and d differ; and
// undefined, which 0 / 0, 1 / 0, 0 * inf and inf - inf are, and what is computed from it (it equals
// itself). Constants are taken at fp32's precision: a decimal of at most five digits is that
// fraction, n/d sqrt(m) log2e^k of small n, d, m is that (0.088388348 is sqrt(2) / 16), and
// anything else is the fp32 number and opaque.
//
// Error. If two formulas differ, their values agree for few seeds: `degree`, `exponentials` and
// `exponent_degree` are what error_bound() needs to say how few.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "num/modular.h"

namespace kw::exact {

inline constexpr int kLevels = 3;

enum class Kind : uint8_t { number, minus_infinity, plus_infinity, logarithm, undefined };

// Why a difference proves nothing: bits.
enum Opaque : uint8_t {
  order = 1,        // max, min, a comparison of reals
  function = 2,     // erf, sin, floor of a real ...
  root = 4,         // a square root that is not taught
  constant = 8,     // a decimal that is no known number
  nested = 16,      // an exponential on top of two others
  logarithms = 32,  // a logarithm used as a number
  branch = 64,      // a statement ran because of an opaque comparison
};
std::string opaque_names(uint8_t bits);  // "order, root"

struct Element {
  // Of a logarithm c log2(w) + y: w mod p, y mod q, c mod q.
  std::array<uint64_t, kLevels> x{};
  Kind kind = Kind::number;
  std::array<uint8_t, kLevels> opaque{};
  // As a quotient of polynomials in inputs and exponentials: bounds of their degrees, of the degree
  // of an exponent, and of the number of exponentials it depends on. Saturating.
  uint16_t numerator = 0, denominator = 0, exponent_degree = 0;
  uint32_t exponentials = 0;
};

// What the executor computes with is virtual: small_algebra.h is another algebra behind it.
class Algebra {
 public:
  static constexpr int kChains = 3;  // of primes
  // With two levels all exponentials are one as exponents: where `nested` is on the path of a
  // result, nothing follows, and three are wanted.
  Algebra(int chain, uint64_t seed, int levels = kLevels);
  virtual ~Algebra() = default;

  // An input: uniform at each level, by its name.
  virtual Element draw(uint64_t name) const;
  virtual Element integer(int64_t value) const;
  // What an integer of positions, sizes or data becomes as a real: that number; or, in general
  // position, an element drawn for it, so that formulas which agree on a few integers (x and x * x
  // on 0 and 1) differ.
  Element of_integer(int64_t value) const;
  void draw_integers() { draws_integers_ = true; }
  virtual Element constant(double value) const;
  virtual Element log2e() const { return log2e_; }
  virtual Element ln2() const { return ln2_; }
  Element minus_infinity() const;

  virtual Element add(const Element& a, const Element& b) const;
  Element sub(const Element& a, const Element& b) const { return add(a, negate(b)); }
  virtual Element mul(const Element& a, const Element& b) const;
  Element div(const Element& a, const Element& b) const { return mul(a, reciprocal(b)); }
  virtual Element negate(const Element& a) const;
  virtual Element reciprocal(const Element& a) const;
  virtual Element exp2(const Element& a) const;
  virtual Element log2(const Element& a) const;
  Element exp(const Element& a) const { return exp2(mul(a, log2e_)); }
  Element log(const Element& a) const { return mul(log2(a), ln2_); }
  virtual Element tanh(const Element& a) const;
  Element sigmoid(const Element& a) const;
  Element sqrt(const Element& a) const;
  // What a 16-bit tensor keeps of it: all, but where elements are as a GPU holds them.
  virtual Element stored(const Element& a) const { return a; }
  virtual Element rsqrt(const Element& a) const { return reciprocal(sqrt(a)); }
  virtual Element max(const Element& a, const Element& b) const;
  virtual Element min(const Element& a, const Element& b) const;
  // A function that nothing is known of.
  Element opaque(uint64_t function, const Element& a) const;

  // A truth, and the opaque operations it depends on.
  struct Truth {
    bool holds;
    uint8_t opaque;
  };
  virtual Truth equal(const Element& a, const Element& b) const;
  virtual Truth less(const Element& a, const Element& b) const;

  // c[rows][columns] += a[rows][depth] * b[depth][columns], or b[columns][depth] transposed.
  virtual void add_product(int rows, int depth, int columns, const Element* a, const Element* b,
                           bool transposed, Element* c) const;

  // A bound of the probability, over the seeds, that two different formulas gave these equal
  // values: see docs/soundness.md.
  double error_bound(const Element& a, const Element& b) const;

  uint64_t prime(int level) const { return moduli_[level].n(); }
  // What the value is compared by: its residue, or the square of 2^value of a logarithm.
  uint64_t residue(const Element& a) const;

 private:
  uint64_t hash(uint64_t key, uint64_t what, int level) const;
  Element number(std::array<uint64_t, kLevels> x) const;
  Element plain(const Element& logarithm) const;  // as a number, opaque
  Element undefined(const Element& a, const Element& b) const;
  Element log_sum(const Element& a, const Element& b) const;
  Element log_multiple(const Element& log, const Element& by) const;
  std::optional<int64_t> small_integer(const Element& a) const;
  uint8_t order_of(const Element& a, const Element& b) const;  // the bit, or 0 for two integers
  bool above(const Element& a, const Element& b) const;
  uint64_t order_key(const Element& a) const;
  uint64_t power_of(int level, uint64_t exponent) const;  // of the level's generator

  uint64_t seed_;
  int levels_;
  bool draws_integers_ = false;
  std::array<Modulus, kLevels> moduli_;
  std::array<uint64_t, kLevels> generator_;  // of order (n - 1) / 2 at its level
  // generator_[level]^(digit << 8 k), for levels 0 and 1
  std::array<std::array<std::array<uint64_t, 256>, 8>, 2> powers_;
  Element log2e_, ln2_;
};

}  // namespace kw::exact
