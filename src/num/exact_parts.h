// What the algebra's files share: streams of random residues, and what a result depends on.
#pragma once
#include <algorithm>
#include <limits>

#include "num/exact.h"

namespace kw::exact {

// Streams of the generator: what a random residue stands for.
enum Stream : uint64_t { input, symbol, generator, exponential, log_power, square_root, ordering };
constexpr uint64_t kFunctions = 16;  // opaque functions from here on

template <class T>
T saturating(uint64_t x) {
  return static_cast<T>(std::min<uint64_t>(x, std::numeric_limits<T>::max()));
}

// What an operation of two operands depends on.
inline void depend(Element& out, const Element& a, const Element& b) {
  for (int l = 0; l < kLevels; ++l) out.opaque[l] = a.opaque[l] | b.opaque[l];
  out.exponent_degree = std::max(a.exponent_degree, b.exponent_degree);
  out.exponentials = saturating<uint32_t>(uint64_t(a.exponentials) + b.exponentials);
}

inline bool is_infinite(const Element& a) {
  return a.kind == Kind::minus_infinity || a.kind == Kind::plus_infinity;
}

inline Kind opposite(Kind k) {
  return k == Kind::minus_infinity  ? Kind::plus_infinity
         : k == Kind::plus_infinity ? Kind::minus_infinity
                                    : k;
}

}  // namespace kw::exact
