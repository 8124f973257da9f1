// Products of matrices of elements, level by level. What a sum depends on is said by row and
// column: the union, and for degrees a bound.
#include <algorithm>

#include "num/exact.h"

namespace kw::exact {

namespace {

// A matrix's rows, one array a level, and what each row depends on. Rows end in zeros, so that
// their length is a multiple of eight.
struct Rows {
  size_t length = 0;
  std::array<std::vector<uint64_t>, kLevels> x;
  struct Summary {
    bool number = true, zero = true;
    std::array<uint8_t, kLevels> opaque{};
    uint32_t numerator = 0, denominator = 0, exponent_degree = 0;
    uint64_t exponentials = 0;
  };
  std::vector<Summary> summary;
};

void summarise(Rows::Summary& s, const Element& e) {
  s.number &= e.kind == Kind::number;
  for (int l = 0; l < kLevels; ++l) {
    s.zero &= e.x[l] == 0;
    s.opaque[l] |= e.opaque[l];
  }
  s.numerator = std::max<uint32_t>(s.numerator, e.numerator);
  s.denominator += e.denominator;
  s.exponent_degree = std::max<uint32_t>(s.exponent_degree, e.exponent_degree);
  s.exponentials += e.exponentials;
}

// at(r, k) is an element, plain(e) what a logarithm is as a number.
template <class At, class Plain>
Rows rows_of(int rows, int depth, int levels, At at, Plain plain) {
  Rows out;
  out.length = (size_t(depth) + 7) / 8 * 8;
  for (int l = 0; l < levels; ++l) out.x[l].resize(rows * out.length);
  out.summary.resize(rows);
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < depth; ++k) {
      const Element& given = at(r, k);
      const Element number = given.kind == Kind::logarithm ? plain(given) : Element();
      const Element& e = given.kind == Kind::logarithm ? number : given;
      summarise(out.summary[r], e);
      for (int l = 0; l < levels; ++l) out.x[l][r * out.length + k] = e.x[l];
    }
  return out;
}

// Eight products are below n * 2^64, for n below 2^61. Their upper words are summed modulo n, which
// is that sum times 2^64 reduced; their lower words once, at the end.
uint64_t dot(const Modulus& n, size_t length, const uint64_t* a, const uint64_t* b) {
  uint64_t upper = 0;
  Word2 lower = 0;
  for (size_t k = 0; k < length; k += 8) {
    Word2 part = 0;
    for (int d = 0; d < 8; ++d) part += Word2(a[k + d]) * b[k + d];
    upper = n.add(upper, static_cast<uint64_t>(part >> 64));
    lower += static_cast<uint64_t>(part);
  }
  return n.add(upper, n.reduce(lower));
}

template <class T>
T saturated(uint64_t x) {
  return static_cast<T>(std::min<uint64_t>(x, static_cast<T>(-1)));
}

// What one sum of products depends on.
Element dependence(const Rows::Summary& a, const Rows::Summary& b) {
  Element e;
  for (int l = 0; l < kLevels; ++l) e.opaque[l] = a.opaque[l] | b.opaque[l];
  e.denominator = saturated<uint16_t>(uint64_t(a.denominator) + b.denominator);
  e.numerator = saturated<uint16_t>(uint64_t(a.numerator) + b.numerator + e.denominator);
  e.exponent_degree = saturated<uint16_t>(std::max(a.exponent_degree, b.exponent_degree));
  e.exponentials = saturated<uint32_t>(a.exponentials + b.exponentials);
  return e;
}

}  // namespace

void Algebra::add_product(int rows, int depth, int columns, const Element* a, const Element* b,
                          bool transposed, Element* c) const {
  const auto number = [&](const Element& logarithm) { return plain(logarithm); };
  const auto in_a = [&](int r, int k) -> const Element& { return a[size_t(r) * depth + k]; };
  const auto in_b = [&](int j, int k) -> const Element& {
    return b[transposed ? size_t(j) * depth + k : size_t(k) * columns + j];
  };
  const Rows left = rows_of(rows, depth, levels_, in_a, number);
  const Rows right = rows_of(columns, depth, levels_, in_b, number);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const Rows::Summary &x = left.summary[i], &y = right.summary[j];
      if (x.number && y.number && (x.zero || y.zero)) continue;
      Element sum = dependence(x, y);
      if (!x.number || !y.number) sum.kind = Kind::undefined;
      const bool lost = levels_ == 2 && (sum.opaque[1] & Opaque::nested);
      for (int l = 0; l < (lost ? 1 : levels_); ++l)
        sum.x[l] = dot(moduli_[l], left.length, &left.x[l][i * left.length],
                       &right.x[l][j * right.length]);
      Element& to = c[size_t(i) * columns + j];
      to = add(to, sum);
    }
}

}  // namespace kw::exact
