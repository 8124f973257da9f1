// Where the elements of tensors are, flat, as PyTorch lays them out.
#pragma once
#include <cstdint>
#include <vector>

namespace kw::fuzz {

inline std::vector<int64_t> strides_of(const std::vector<int64_t>& shape) {
  std::vector<int64_t> s(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) s[d] = stride;
  return s;
}

// Where each element of a result of this shape is in a tensor that broadcasts against it.
class Places {
 public:
  Places(const std::vector<int64_t>& result, const std::vector<int64_t>& operand) {
    const size_t lead = result.size() - operand.size();
    const std::vector<int64_t> own = strides_of(operand);
    places_.assign(1, 0);
    for (size_t d = 0; d < result.size(); ++d) {
      const int64_t stride = d < lead || operand[d - lead] == 1 ? 0 : own[d - lead];
      std::vector<int64_t> next;
      next.reserve(places_.size() * static_cast<size_t>(result[d]));
      for (const int64_t p : places_)
        for (int64_t x = 0; x < result[d]; ++x) next.push_back(p + x * stride);
      places_ = std::move(next);
    }
  }
  int64_t operator[](size_t n) const { return places_[n]; }

 private:
  std::vector<int64_t> places_;
};

}  // namespace kw::fuzz
