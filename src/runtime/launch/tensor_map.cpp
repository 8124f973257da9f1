#include "runtime/launch/tensor_map.h"

#include <fmt/format.h>

namespace kw::runtime {
namespace {

constexpr int64_t wide_panel_bytes = 128, narrow_panel_bytes = 64, stride_multiple = 16;
constexpr int swizzle_64b = 2, swizzle_128b = 3;  // CUtensorMapSwizzle
constexpr int64_t largest_stride = int64_t{1} << 40;
constexpr int64_t largest_dim = int64_t{1} << 32;

// CUtensorMapDataType; -1 for types that a tensor map cannot hold.
int data_type(Dtype t) {
  switch (t) {
    case Dtype::u8:
    case Dtype::e4m3:  // the copy engine moves bytes
    case Dtype::boolean:
      return 0;
    case Dtype::u32:
      return 2;
    case Dtype::i32:
      return 3;
    case Dtype::i64:
      return 5;
    case Dtype::f16:
      return 6;
    case Dtype::f32:
      return 7;
    case Dtype::f64:
      return 8;
    case Dtype::bf16:
      return 9;
  }
  return -1;
}

// CUtensorMapL2promotion.
int promotion(int bytes) { return bytes == 256 ? 3 : bytes == 128 ? 2 : bytes == 64 ? 1 : 0; }

// The columns of a panel, or nothing when those of the tensor or of its copies are not whole
// panels.
std::optional<int64_t> panel_of(const Argument& argument, const TensorView& tensor,
                                Diagnostics& diagnostics) {
  const int64_t element = static_cast<int64_t>(bytes(tensor.dtype));
  const int64_t columns = tensor.shape[3];
  if (argument.part_of_rows) return wide_panel_bytes / element;
  const bool wide = columns * element % wide_panel_bytes == 0;
  const int64_t panel = (wide ? wide_panel_bytes : narrow_panel_bytes) / element;
  if (columns % panel != 0)
    diagnostics.error(
        "launch.shape", {},
        fmt::format("{} has {} columns, no multiple of {}", argument.name, columns, panel));
  else if (argument.box_columns % panel != 0)
    diagnostics.error("launch.shape", {},
                      fmt::format("{} has {} columns, which are panels of {}; one copy moves {}",
                                  argument.name, columns, panel, argument.box_columns));
  else
    return panel;
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<int64_t>> row_strides(const Argument& argument, const TensorView& tensor,
                                                int64_t of_one, Diagnostics& diagnostics) {
  const auto refuse = [&](const std::string& message) {
    diagnostics.error("launch.stride", {}, message).hint =
        fmt::format("pass {}.contiguous()", argument.name);
    return std::nullopt;
  };
  if (tensor.strides.back() != 1)
    return refuse(fmt::format("{}: the last dimension has stride {}, not 1", argument.name,
                              tensor.strides.back()));
  const int64_t element = static_cast<int64_t>(bytes(tensor.dtype));
  std::vector<int64_t> out;
  for (size_t dim = tensor.shape.size() - 1; dim-- > 0;) {
    const int64_t stride = tensor.strides[dim];
    if (tensor.shape[dim] != 1 && (stride <= 0 || stride > largest_stride / element ||
                                   stride * element % stride_multiple != 0))
      return refuse(
          fmt::format("{}: the stride of dimension {} is {} elements of {}; its copies "
                      "take positive multiples of {} elements",
                      argument.name, dim, stride, name(tensor.dtype), stride_multiple / element));
    out.insert(out.begin(), tensor.shape[dim] == 1 ? of_one : stride * element);
  }
  return out;
}

std::optional<TensorMapGeometry> tensor_map_geometry(const Argument& argument,
                                                     const TensorView& tensor,
                                                     Diagnostics& diagnostics) {
  const std::optional<int64_t> panel = panel_of(argument, tensor, diagnostics);
  if (!panel) return std::nullopt;
  const auto strides = row_strides(argument, tensor, wide_panel_bytes, diagnostics);
  if (!strides) return std::nullopt;
  for (const int64_t extent : tensor.shape)
    if (extent > largest_dim) {
      diagnostics.error(
          "launch.shape", {},
          fmt::format("{} has a dimension of {}, more than 2^32", argument.name, extent));
      return std::nullopt;
    }

  TensorMapGeometry map;
  map.dtype = data_type(tensor.dtype);
  const uint64_t panel_bytes = static_cast<uint64_t>(*panel) * bytes(tensor.dtype);
  const bool part = argument.part_of_rows;  // the first dimension is all of a row, one panel
  map.dims = {static_cast<uint64_t>(part ? tensor.shape[3] : *panel),
              static_cast<uint64_t>(tensor.shape[2]),
              static_cast<uint64_t>(part ? 1 : tensor.shape[3] / *panel),
              static_cast<uint64_t>(tensor.shape[1]), static_cast<uint64_t>(tensor.shape[0])};
  const auto stride = [&](int dim) { return static_cast<uint64_t>((*strides)[dim]); };
  map.strides = {stride(2), panel_bytes, stride(1), stride(0)};
  map.box = {static_cast<uint32_t>(*panel), static_cast<uint32_t>(argument.box_rows),
             static_cast<uint32_t>(argument.box_columns / *panel), 1, 1};
  map.swizzle = panel_bytes == wide_panel_bytes ? swizzle_128b : swizzle_64b;
  map.l2_promotion = promotion(argument.l2_promotion);
  return map;
}

}  // namespace kw::runtime
