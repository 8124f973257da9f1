// The exact algebra: what is an identity holds for every seed and chain of primes, and what is none
// does not; what is opaque says so.
#include "num/exact.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kw::exact {
namespace {

class Laws : public testing::TestWithParam<int> {
 protected:
  Laws() : A(GetParam() % Algebra::kChains, 1000 + GetParam()) {}
  Element any() const { return A.draw(next_++); }
  Element number(double x) const { return A.constant(x); }
  // Equal, and no opaque operation was needed.
  void same(const Element& a, const Element& b) const {
    EXPECT_TRUE(A.equal(a, b).holds);
    EXPECT_EQ(A.equal(a, b).opaque, 0) << opaque_names(A.equal(a, b).opaque);
  }
  void same_on_all_levels(const Element& a, const Element& b) const {
    EXPECT_EQ(a.x, b.x);
    EXPECT_EQ(a.kind, b.kind);
  }
  void differ(const Element& a, const Element& b) const { EXPECT_FALSE(A.equal(a, b).holds); }

  const Algebra A;
  mutable uint64_t next_ = 1;
};
INSTANTIATE_TEST_SUITE_P(Seed, Laws, testing::Range(0, 6));

TEST_P(Laws, a_commutative_ring_with_inverses) {
  const Element x = any(), y = any(), z = any();
  same_on_all_levels(A.add(x, y), A.add(y, x));
  same_on_all_levels(A.add(A.add(x, y), z), A.add(x, A.add(y, z)));
  same_on_all_levels(A.mul(x, y), A.mul(y, x));
  same_on_all_levels(A.mul(A.mul(x, y), z), A.mul(x, A.mul(y, z)));
  same_on_all_levels(A.mul(x, A.add(y, z)), A.add(A.mul(x, y), A.mul(x, z)));
  same_on_all_levels(A.sub(x, x), A.integer(0));
  same_on_all_levels(A.mul(x, A.reciprocal(x)), A.integer(1));
  same_on_all_levels(A.div(A.mul(x, y), y), x);
  same_on_all_levels(A.mul(A.integer(-3), x), A.negate(A.add(x, A.add(x, x))));
  differ(x, y);
  differ(A.mul(x, x), x);
  differ(A.sub(x, y), A.sub(y, x));
}

TEST_P(Laws, exponentials_turn_sums_into_products) {
  const Element x = any(), y = any();
  same(A.exp2(A.add(x, y)), A.mul(A.exp2(x), A.exp2(y)));
  same(A.exp2(A.negate(x)), A.reciprocal(A.exp2(x)));
  same(A.exp2(A.integer(0)), A.integer(1));
  same(A.exp2(A.mul(x, A.log2e())), A.exp(x));
  same(A.exp2(A.mul(A.mul(x, A.ln2()), A.log2e())), A.exp2(x));
  differ(A.exp2(x), A.exp(x));
  differ(A.exp2(A.mul(x, y)), A.mul(A.exp2(x), A.exp2(y)));
  differ(A.mul(A.exp2(x), y), A.exp2(A.mul(x, y)));
}

TEST_P(Laws, an_exponential_of_an_exponential_is_exact_and_a_third_is_opaque) {
  const Element x = any(), y = any();
  const Element both = A.exp2(A.exp2(A.add(x, y)));
  same(both, A.exp2(A.mul(A.exp2(x), A.exp2(y))));
  differ(both, A.exp2(A.mul(A.exp2(x), A.exp2(x))));
  const Element third = A.exp2(both);
  EXPECT_TRUE(A.equal(third, A.exp2(A.exp2(A.exp2(A.add(x, y))))).holds);
  EXPECT_EQ(third.opaque[0], Opaque::nested);
  EXPECT_EQ(both.opaque[0], 0);
}

// What it gives up is said: two exponentials as exponents are one.
TEST(Exact, two_levels_are_enough_for_one_exponential) {
  const Algebra a(0, 1, 2), whole(0, 1);
  const Element x = a.draw(1), y = a.draw(2);
  EXPECT_TRUE(a.equal(a.exp2(a.add(x, y)), a.mul(a.exp2(x), a.exp2(y))).holds);
  EXPECT_EQ(a.equal(a.exp2(x), a.exp2(y)).opaque, 0);
  EXPECT_FALSE(a.equal(a.exp2(x), a.exp2(y)).holds);
  EXPECT_EQ(a.exp2(x).x[0], whole.exp2(whole.draw(1)).x[0]);
  const Algebra::Truth nested = a.equal(a.exp2(a.exp2(x)), a.exp2(a.exp2(y)));
  EXPECT_EQ(nested.opaque, Opaque::nested);
  EXPECT_TRUE(nested.holds);
  const Element left[] = {a.exp2(x), a.exp2(y)}, right[] = {x, y};
  Element sum = a.integer(0);
  a.add_product(1, 2, 1, left, right, true, &sum);
  EXPECT_EQ(sum.opaque[0], 0);
  EXPECT_TRUE(a.equal(sum, a.add(a.mul(left[0], x), a.mul(left[1], y))).holds);
  EXPECT_EQ(a.exp2(sum).opaque[0], Opaque::nested);
  EXPECT_TRUE(a.mul(a.log2(x), a.exp2(y)).opaque[0] & Opaque::nested);
}

TEST_P(Laws, sigmoid_and_tanh_are_what_they_are_by_exponentials) {
  const Element x = any(), one = A.integer(1), half = A.reciprocal(A.integer(2));
  const Element sigmoid = A.sigmoid(x), ex = A.exp(x);
  same(sigmoid, A.reciprocal(A.add(one, A.exp(A.negate(x)))));
  same(sigmoid, A.div(ex, A.add(one, ex)));
  same(sigmoid, A.mul(half, A.add(one, A.tanh(A.mul(half, x)))));
  same(A.tanh(A.negate(x)), A.negate(A.tanh(x)));
  // As a score: under another exponential.
  same(A.exp(sigmoid), A.exp(A.mul(half, A.add(one, A.tanh(A.mul(half, x))))));
  const Element cap = any();
  same(A.exp(A.sub(A.mul(cap, A.tanh(A.div(x, cap))), x)),
       A.div(A.exp(A.mul(cap, A.tanh(A.div(x, cap)))), ex));
  differ(A.tanh(x), A.tanh(A.mul(x, half)));
}

TEST_P(Laws, logarithms_are_known_by_their_powers) {
  const Element x = A.exp2(any()), y = any(), k = any();
  same(A.exp2(A.log2(y)), y);
  same(A.log2(A.mul(x, y)), A.add(A.log2(x), A.log2(y)));
  same(A.log2(A.div(x, y)), A.sub(A.log2(x), A.log2(y)));
  same(A.log(A.mul(y, A.exp(k))), A.add(k, A.log(y)));
  same(A.mul(k, A.log2(A.mul(x, y))), A.add(A.mul(k, A.log2(x)), A.mul(k, A.log2(y))));
  same(A.mul(A.mul(A.log2(y), A.ln2()), A.log2e()), A.log2(y));
  same(A.exp(A.log(y)), y);
  differ(A.log2(y), A.log(y));
  differ(A.log2(x), A.log2(y));
  // Sums of unlike multiples: the log-sum of a row whose scores are multiples of log(i + 1).
  const Element c = any(), d = any();
  const Element unlike = A.add(A.mul(c, A.log2(x)), A.mul(d, A.log2(y)));
  EXPECT_EQ(unlike.opaque[0], 0);
  same(unlike, A.add(A.mul(d, A.log2(y)), A.mul(c, A.log2(x))));
  same(A.add(unlike, A.log2(k)), A.add(A.mul(c, A.log2(x)), A.add(A.log2(k), A.mul(d, A.log2(y)))));
  same(A.sub(unlike, A.mul(d, A.log2(y))), A.mul(c, A.log2(x)));
  const Element powers = A.mul(A.exp2(A.mul(c, A.log2(x))), A.exp2(A.mul(d, A.log2(y))));
  EXPECT_TRUE(A.equal(A.exp2(unlike), powers).holds);
  EXPECT_EQ(A.equal(A.exp2(unlike), y).opaque, Opaque::logarithms);
  differ(unlike, A.add(A.mul(d, A.log2(x)), A.mul(c, A.log2(y))));
  differ(unlike, A.mul(A.add(c, d), A.log2(A.mul(x, y))));
  EXPECT_EQ(A.log2(A.integer(0)).kind, Kind::minus_infinity);
  // As a number it is opaque.
  const Element used = A.mul(A.log2(x), A.log2(y));
  EXPECT_EQ(used.opaque[0], Opaque::logarithms);
}

TEST_P(Laws, roots_of_small_primes_are_roots_and_others_are_opaque) {
  for (int n : {2, 3, 64, 96, 128, 130, 242, 961}) {
    const Element root = A.sqrt(A.integer(n));
    same_on_all_levels(A.mul(root, root), A.integer(n));
    same(A.mul(A.rsqrt(A.integer(n)), root), A.integer(1));
  }
  same(A.sqrt(A.integer(6)), A.mul(A.sqrt(A.integer(2)), A.sqrt(A.integer(3))));
  EXPECT_EQ(A.sqrt(A.integer(37)).opaque[0], Opaque::root);
  const Element x = any();
  EXPECT_TRUE(A.equal(A.mul(A.rsqrt(x), A.sqrt(x)), A.integer(1)).holds);
}

TEST_P(Laws, constants_mean_what_was_written_or_folded) {
  same(number(0.08838834764831845), A.rsqrt(A.integer(128)));
  same(number(0.08838834764831845f), A.rsqrt(A.integer(128)));
  same(number(0.0017677669529663688), A.div(A.rsqrt(A.integer(128)), A.integer(50)));
  same(number(1.4426950408889634), A.log2e());
  same(number(0.6931471805599453), A.ln2());
  same(number(0.12751743), A.mul(A.rsqrt(A.integer(128)), A.log2e()));
  same(number(0.0625), A.reciprocal(A.integer(16)));
  same(number(-0.7), A.div(A.integer(-7), A.integer(10)));
  same(number(0.0883), A.div(A.integer(883), A.integer(10000)));
  same(number(1e9), A.integer(1000000000));
  same(number(0), A.integer(0));
  EXPECT_EQ(number(-INFINITY).kind, Kind::minus_infinity);
  EXPECT_EQ(number(3.14159265).opaque[0], Opaque::constant);
  same_on_all_levels(number(3.14159265), number(3.14159265f));
  differ(number(0.5), number(0.25));
}

TEST_P(Laws, infinities_and_what_is_undefined) {
  const Element x = any(), inf = A.minus_infinity(), zero = A.integer(0);
  same(A.exp2(inf), zero);
  same(A.add(inf, x), inf);
  same(A.mul(x, inf), inf);
  EXPECT_EQ(A.negate(inf).kind, Kind::plus_infinity);
  EXPECT_EQ(A.mul(A.integer(-1), inf).kind, Kind::plus_infinity);
  same(A.tanh(inf), A.integer(-1));
  same(A.sigmoid(inf), zero);
  EXPECT_EQ(A.sub(inf, inf).kind, Kind::undefined);
  EXPECT_EQ(A.mul(zero, inf).kind, Kind::undefined);
  EXPECT_EQ(A.reciprocal(zero).kind, Kind::undefined);
  EXPECT_EQ(A.mul(A.div(zero, zero), zero).kind, Kind::undefined);
  differ(A.reciprocal(zero), zero);
  EXPECT_EQ(A.max(inf, x).x, x.x);
  EXPECT_EQ(A.max(inf, x).opaque[0], 0);
  EXPECT_TRUE(A.less(inf, x).holds);
  EXPECT_EQ(A.less(inf, x).opaque, 0);
}

TEST_P(Laws, order_is_total_and_opaque) {
  const Element x = any(), y = any(), z = any();
  EXPECT_NE(A.less(x, y).holds, A.less(y, x).holds);
  EXPECT_EQ(A.less(x, y).opaque, Opaque::order);
  EXPECT_EQ(A.max(x, A.max(y, z)).x, A.max(A.max(x, y), z).x);
  EXPECT_EQ(A.max(x, y).x, A.max(y, x).x);
  EXPECT_EQ(A.max(x, y).opaque[0], Opaque::order);
  EXPECT_EQ(A.max(x, x).opaque[0], 0);
  const Element opposite = A.max(A.negate(x), A.negate(y));
  EXPECT_TRUE(A.equal(A.min(x, y), A.negate(opposite)).holds);
  // Integers have their own order, which is known; beside another number it is any.
  const auto at = [&](int64_t n) { return A.integer(n); };
  EXPECT_TRUE(A.less(at(-3), at(2)).holds && !A.less(at(2), at(-3)).holds);
  EXPECT_EQ(A.less(at(-3), at(2)).opaque, 0);
  same(A.max(at(-3), A.negate(at(-3))), at(3));
  same(A.max(at(70000), A.sub(at(9), at(4))), at(70000));
  EXPECT_EQ(A.max(at(3), x).opaque[0], Opaque::order);
  EXPECT_EQ(A.max(A.max(at(1), x), at(2)).x, A.max(at(1), A.max(x, at(2))).x);
  EXPECT_EQ(A.max(A.constant(0.5), at(1)).opaque[0], Opaque::order);
  // Both signs occur, so that both arms of a ReLU run.
  int positive = 0;
  for (int n = 0; n < 100; ++n) positive += A.less(A.integer(0), any()).holds;
  EXPECT_GT(positive, 20);
  EXPECT_LT(positive, 80);
}

TEST_P(Laws, an_opaque_exponent_does_not_taint_the_number_itself) {
  const Element x = any(), hidden = A.max(x, A.integer(0));
  EXPECT_EQ(A.exp2(hidden).opaque[0], Opaque::order);
  const Element third = A.exp2(A.exp2(x));  // its own exponent is opaque, it is not
  EXPECT_EQ(third.opaque[0], 0);
  EXPECT_NE(third.opaque[2], 0);
}

TEST_P(Laws, products_of_matrices_are_sums_of_products) {
  constexpr int kRows = 3, kDepth = 21, kColumns = 5;
  std::vector<Element> a(kRows * kDepth), b(kDepth * kColumns), bt(b.size()), c(kRows * kColumns);
  for (Element& e : a) e = any();
  for (int k = 0; k < kDepth; ++k)
    for (int j = 0; j < kColumns; ++j) b[k * kColumns + j] = bt[j * kDepth + k] = any();
  a[4] = A.max(a[4], a[5]);
  for (Element& e : c) e = any();
  std::vector<Element> transposed = c, want = c;
  A.add_product(kRows, kDepth, kColumns, a.data(), b.data(), false, c.data());
  A.add_product(kRows, kDepth, kColumns, a.data(), bt.data(), true, transposed.data());
  for (int n = 0; n < kRows * kColumns; ++n) {
    for (int k = 0; k < kDepth; ++k)
      want[n] = A.add(want[n], A.mul(a[n / kColumns * kDepth + k], b[k * kColumns + n % kColumns]));
    same_on_all_levels(c[n], want[n]);
    same_on_all_levels(transposed[n], want[n]);
    EXPECT_EQ(c[n].opaque, want[n].opaque);
    EXPECT_GE(c[n].numerator, want[n].numerator);
  }
}

TEST(Constants, without_a_meaning_are_seldom_given_one) {
  const Algebra A(0, 1);
  int taken = 0;
  for (int n = 1; n <= 20000; ++n)
    taken += A.constant(std::exp2(-10 + 20 * std::fmod(n * 0.6180339887498949, 1))).opaque[0] == 0;
  EXPECT_LT(taken, 100);
}

TEST(Chains, are_primes_whose_small_primes_are_squares) {
  for (int chain = 0; chain < Algebra::kChains; ++chain) {
    const Algebra A(chain, 1);
    EXPECT_EQ(A.prime(0), 2 * A.prime(1) + 1);
    EXPECT_EQ(A.prime(1), 2 * A.prime(2) + 1);
    EXPECT_LT(A.prime(0), uint64_t(1) << 61);
    for (int level = 0; level < kLevels; ++level) {
      const Modulus n(A.prime(level));
      for (uint64_t base : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37}) {  // Miller and Rabin
        const uint64_t x = n.power(n.into(base), (n.n() - 1) / 2);
        EXPECT_TRUE(x == n.one() || x == n.negate(n.one()));
        if (base <= 31) {
          EXPECT_EQ(x, n.one()) << base;
        }
      }
    }
  }
}

TEST(Bound, counts_degrees_and_pairs_of_exponentials) {
  const Algebra A(0, 1);
  const Element x = A.draw(1), y = A.draw(2);
  const double r = static_cast<double>(A.prime(2));
  EXPECT_DOUBLE_EQ(A.error_bound(A.mul(x, y), A.mul(y, x)), 2 / r);
  const Element e = A.add(A.exp2(A.mul(x, y)), A.exp2(x));  // degree 1; exponents of degree 2
  EXPECT_EQ(e.exponentials, 2u);
  EXPECT_EQ(e.exponent_degree, 2);
  EXPECT_DOUBLE_EQ(A.error_bound(e, e), (1 + 2.0 * 4 * 3 / 2) / r);
  const Element quotient = A.div(x, A.add(y, e));
  EXPECT_EQ(quotient.numerator, 1);
  EXPECT_EQ(quotient.denominator, 1);
}

TEST(Seeds, give_other_values_and_the_same_seed_the_same) {
  const Algebra A(0, 1), B(0, 1), C(0, 2), D(1, 1);
  EXPECT_EQ(A.draw(7).x, B.draw(7).x);
  EXPECT_NE(A.draw(7).x, C.draw(7).x);
  EXPECT_NE(A.draw(7).x, D.draw(7).x);
  EXPECT_NE(A.log2e().x, C.log2e().x);
}

}  // namespace
}  // namespace kw::exact
