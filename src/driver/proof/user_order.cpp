#include "driver/proof/user_order.h"

#include <algorithm>

namespace kw::driver {
namespace {

void reorder(Tensor& tensor, const std::vector<int>& dims) {
  const int rank = tensor.rank();
  std::vector<int64_t> kernel_shape(rank), stride(rank, 1);
  for (int d = rank - 2; d >= 0; --d) stride[d] = stride[d + 1] * tensor.shape[d + 1];
  for (int k = 0; k < rank; ++k) kernel_shape[k] = tensor.shape[dims[k]];
  std::vector<double> moved(tensor.values.size());
  std::vector<int64_t> at(rank, 0);
  for (const double value : tensor.values) {
    int64_t to = 0;
    for (int k = 0; k < rank; ++k) to += at[k] * stride[dims[k]];
    moved[to] = value;
    for (int k = rank - 1; k >= 0 && ++at[k] == kernel_shape[k]; --k) at[k] = 0;
  }
  tensor.values = std::move(moved);
}

}  // namespace

bool to_user_order(Tensor& tensor, const std::string& name, const transfer::Result& transferred) {
  for (const transfer::Binding& b : transferred.bindings) {
    if (b.user != name) continue;
    std::vector<int> dims = b.dims;
    std::erase(dims, -1);  // a dimension of 1 that the user's tensor lacks moves nothing
    if (std::is_sorted(dims.begin(), dims.end())) continue;
    reorder(tensor, dims);
    return true;
  }
  return false;
}

}  // namespace kw::driver
