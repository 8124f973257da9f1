// A tensor's elements as bytes in some order of its dimensions: what a kernel reads and writes.
//
// Inputs are draws (num/random.h), and for probes two more things: values with a mean, and windows.
// What follows from other inputs, as gradients read what a forward pass has saved, is given.
// A window is zero but for an identity: with it as V, the output is some columns of the attention
// matrix itself.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "num/random.h"
#include "num/tensor.h"

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

// What an input is filled with: what is drawn, plus `mean`; or with a `window`, over the last two
// dimensions, draw.value where row == window + column, and zero elsewhere.
struct Contents {
  Draw draw;
  double mean = 0;
  int64_t window = -1;
  std::shared_ptr<const Tensor> given;  // these values, in row-major order; null: they are drawn
};

// The values as bytes in that order. Uses every core: a case has up to 10^8 elements.
std::string draw_bytes(const Contents& how, uint64_t seed, const Strided& tensor);
// The same values for a CPU.
Tensor draw_tensor(const Contents& how, uint64_t seed, Dtype dtype, std::vector<int64_t> shape);

// The value of the element at `position`.
double element(std::string_view bytes, Dtype dtype, int64_t position);

}  // namespace kw::runtime
