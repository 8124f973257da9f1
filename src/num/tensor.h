// Dense tensors whose values are held as fp64, already rounded to the tensor's type.
//
// Row-major; a tensor of no dimensions has one element. Everything a checker touches fits: fp64
// holds each element of every type of ours exactly, but for 64-bit integers beyond 2^53.
#pragma once
#include <cstdint>
#include <vector>

#include "num/dtype.h"

namespace kw {

struct Tensor {
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  std::vector<double> values;

  Tensor() = default;
  // Zeros.
  Tensor(Dtype dtype, std::vector<int64_t> shape);

  int64_t count() const { return static_cast<int64_t>(values.size()); }
  int rank() const { return static_cast<int>(shape.size()); }

  // Where an element is in `values`; -1 when an index is out of range or their number is wrong.
  int64_t offset(const std::vector<int64_t>& index) const;

  // Elements by index; the index must be in range.
  double at(const std::vector<int64_t>& index) const { return values[offset(index)]; }
  // Rounds to the tensor's type.
  void set(const std::vector<int64_t>& index, double value) {
    values[offset(index)] = round_to(dtype, value);
  }
};

// The product of the dimensions; 1 for none.
int64_t element_count(const std::vector<int64_t>& shape);

}  // namespace kw
