// From tensors to the bytes of a kernel's argument struct: everything about a launch that can be
// decided without a GPU.
//
// Sizes are bound by the tensors' shapes; each precondition of launch.json, of the copy engine and
// of the struct's types is checked here, by the argument's name. What is left for the launch itself
// are addresses: of tensors, which change from call to call, and of workspaces.
//
// Tensor maps (CUDA Driver API, cuTensorMapEncodeTiled): a tensor [batch, head, row, column] is
// seen as five dimensions, innermost first: column in a panel of 128 bytes, row, panel, head,
// batch. With the 128-byte swizzle that is what wgmma reads, and one copy moves a whole tile. Where
// a row is no multiple of 128 bytes, panels are of 64 bytes, with the 64-byte swizzle. The copy
// engine needs a contiguous last dimension, and 16-byte multiples for the address and every stride;
// so do tensors whose rows threads copy 16 bytes at a time ("row_alignment").
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/launch_spec.h"

namespace kw::runtime {

// A tensor in device memory. Strides count elements.
struct TensorView {
  uint64_t data = 0;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape, strides;
};
using Tensors = std::map<std::string, TensorView, std::less<>>;
using Scalars = std::map<std::string, double, std::less<>>;

// The arguments of cuTensorMapEncodeTiled but for the address.
struct TensorMapGeometry {
  int dtype = 0;  // CUtensorMapDataType
  std::array<uint64_t, 5> dims{};
  std::array<uint64_t, 4> strides{};  // bytes, of dims 1 to 4
  std::array<uint32_t, 5> box{};
  int swizzle = 0;       // CUtensorMapSwizzle
  int l2_promotion = 0;  // CUtensorMapL2promotion
};

// A tensor argument, in the order of launch.json.
struct PackedTensor {
  std::string name;
  int64_t offset = 0;
  int64_t address_alignment = 1;         // bytes
  std::optional<TensorMapGeometry> map;  // none: a plain pointer at the offset
};

struct PackedWorkspace {
  std::string name;
  int64_t offset = 0, bytes = 0;
  bool zeroed = true;                    // a scratch holds anything
  std::optional<TensorMapGeometry> map;  // of its rows, at the offset; the pointer is behind it
  int64_t pointer() const { return map ? offset + 128 : offset; }
};

struct Packed {
  std::vector<unsigned char> bytes;  // the struct, with zeros where addresses and maps go
  std::vector<PackedTensor> tensors;
  std::vector<PackedWorkspace> workspaces;
  uint32_t grid = 0, grid_y = 1, grid_z = 1;
  std::vector<uint32_t> grid_before;  // of the entries before, in their order
  std::vector<uint32_t> grid_after;   // and of those behind
};

// `multiprocessors` is what SMS means. Reports launch.missing, launch.unknown, launch.dtype,
// launch.shape, launch.stride, launch.alignment, launch.requires, launch.expression, launch.range.
std::optional<Packed> pack(const LaunchSpec& spec, const Tensors& tensors, const Scalars& scalars,
                           int multiprocessors, Diagnostics& diagnostics);

// The preconditions of one address, also checked when a plan is used again with other tensors.
bool check_address(const PackedTensor& tensor, uint64_t address, Diagnostics& diagnostics);

}  // namespace kw::runtime
