// A tensor's elements as bytes in some order of its dimensions: what a kernel reads and writes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "num/random.h"

namespace kw::runtime {

struct Strided {
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape, strides;  // strides in elements; no gaps between the elements

  // Row-major, or for rank 4 with dimensions 1 and 2 exchanged in memory: [B, S, H, D].
  static Strided of(Dtype dtype, std::vector<int64_t> shape, bool rows_before_heads);

  int64_t count() const;
  int64_t bytes() const { return count() * static_cast<int64_t>(kw::bytes(dtype)); }
  // The position in memory, in elements, of the row-major element n.
  int64_t position(int64_t n) const;
};

// The drawn values as bytes in that order. Uses every core: a case has up to 10^8 elements.
std::string draw_bytes(const Draw& how, uint64_t seed, const Strided& tensor);

// The value of the element at `position`.
double element(const std::string& bytes, Dtype dtype, int64_t position);

}  // namespace kw::runtime
