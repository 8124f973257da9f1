// Products of matrices of elements: level by level, eight products to a reduction. What a sum
// depends on is said by row and column: the union, and for degrees a bound.
#include <algorithm>

#include "num/exact.h"

namespace kw::exact {

namespace {

// A matrix's rows [rows][depth], one array a level, and what each row depends on.
struct Rows {
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

// at(r, k) is an element.
template <class At>
Rows rows_of(int rows, int depth, At at) {
  Rows out;
  for (auto& level : out.x) level.resize(size_t(rows) * depth);
  out.summary.resize(rows);
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < depth; ++k) {
      const Element& e = at(r, k);
      summarise(out.summary[r], e);
      for (int l = 0; l < kLevels; ++l) out.x[l][size_t(r) * depth + k] = e.x[l];
    }
  return out;
}

uint64_t dot(const Modulus& n, int depth, const uint64_t* a, const uint64_t* b) {
  uint64_t sum = 0;
  for (int k = 0; k < depth; k += 8) {
    Word2 part = 0;
    const int end = std::min(k + 8, depth);
    for (int d = k; d < end; ++d) part += Word2(a[d]) * b[d];
    sum = n.add(sum, n.reduce(part));
  }
  return sum;
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
  const Rows left = rows_of(rows, depth, [&](int r, int k) { return plain(a[r * depth + k]); });
  const Rows right = rows_of(columns, depth, [&](int j, int k) {
    return plain(b[transposed ? j * depth + k : k * columns + j]);
  });
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const Rows::Summary &x = left.summary[i], &y = right.summary[j];
      if (x.number && y.number && (x.zero || y.zero)) continue;
      Element sum = dependence(x, y);
      if (!x.number || !y.number) sum.kind = Kind::undefined;
      for (int l = 0; l < kLevels; ++l)
        sum.x[l] = dot(moduli_[l], depth, &left.x[l][size_t(i) * depth],
                       &right.x[l][size_t(j) * depth]);
      Element& to = c[size_t(i) * columns + j];
      to = add(to, sum);
    }
}

}  // namespace kw::exact
