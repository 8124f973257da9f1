// The algebra of a KW_EXACT build, for the executor: what fits the GPU's storage.
//
// A number is a residue modulo p = 65267, which a 16-bit tile holds, and one modulo q = (p - 1) /
// 2, the number as an exponent; exp2(x) is 4^(x mod q) modulo p. Both in an element's first two
// words; its third is 0. cuda/kw/exact/real.cuh says what is what and computes the same on the GPU;
// the two share no code, and tests/unit/num/small.cpp holds them against each other.
//
// It is far too small to tell formulas apart with any certainty (that is Algebra's), and it need
// not be: program and kernel are the same formula on the same words, and the question is whether
// each of some million words came to its place.
#pragma once
#include "num/exact.h"

namespace kw::exact {

class SmallAlgebra : public Algebra {
 public:
  static constexpr uint64_t kP = 65267, kQ = 32633, kGenerator = 4;
  explicit SmallAlgebra(uint64_t seed) : Algebra(0, seed) {}

  // Names of inputs: a word of 16-bit storage, or the bits of an fp32 number, marked as such. Other
  // names (bit 63: what the reading leaves to chance) are drawn.
  static double word(uint16_t bits) { return bits; }
  static double fp32(float value);
  Element draw(uint64_t name) const override;

  Element integer(int64_t value) const override;
  Element constant(double value) const override;  // the nearest fp32 number, which is m 2^e
  Element log2e() const override { return constant(1.4426950408889634); }
  Element ln2() const override { return constant(0.6931471805599453); }
  Element add(const Element& a, const Element& b) const override;
  Element mul(const Element& a, const Element& b) const override;
  Element negate(const Element& a) const override;
  Element reciprocal(const Element& a) const override;
  Element exp2(const Element& a) const override;
  Element log2(const Element& a) const override;
  Element tanh(const Element& a) const override { return arbitrary(1, a); }
  Element rsqrt(const Element& a) const override { return arbitrary(2, a); }
  Element stored(const Element& a) const override;
  Element max(const Element& a, const Element& b) const override;
  Element min(const Element& a, const Element& b) const override;
  Truth equal(const Element& a, const Element& b) const override;
  Truth less(const Element& a, const Element& b) const override;
  void add_product(int rows, int depth, int columns, const Element* a, const Element* b,
                   bool transposed, Element* c) const override;

  // As the GPU holds it: the whole word of a register, of which 16-bit storage keeps the upper
  // half.
  static uint32_t bits(const Element& a);
  static Element of(uint32_t bits);

 private:
  Element arbitrary(uint32_t function, const Element& a) const;
};

}  // namespace kw::exact
