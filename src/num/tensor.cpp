#include "num/tensor.h"

namespace kw {

int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  return count;
}

Tensor::Tensor(Dtype dtype, std::vector<int64_t> shape)
    : dtype(dtype), shape(std::move(shape)), values(element_count(this->shape), 0.0) {}

int64_t Tensor::offset(const std::vector<int64_t>& index) const {
  if (index.size() != shape.size()) return -1;
  int64_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (index[d] < 0 || index[d] >= shape[d]) return -1;
    offset = offset * shape[d] + index[d];
  }
  return offset;
}

}  // namespace kw
