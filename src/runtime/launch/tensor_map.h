// The geometry of one tensor map, and what copies ask of a tensor's strides: see pack.h.
#pragma once
#include "runtime/launch/pack.h"

namespace kw::runtime {

// The strides in bytes of all but the last dimension of a tensor whose rows are copied, 16 bytes at
// a time or by the copy engine. A dimension of extent 1 has no stride that matters (PyTorch leaves
// anything there): it is given `of_one`. Reports launch.stride by the argument's name, with the
// stride that copies cannot follow.
std::optional<std::vector<int64_t>> row_strides(const Argument& argument, const TensorView& tensor,
                                                int64_t of_one, Diagnostics& diagnostics);

// Reports launch.stride as above, and launch.shape.
std::optional<TensorMapGeometry> tensor_map_geometry(const Argument& argument,
                                                     const TensorView& tensor,
                                                     Diagnostics& diagnostics);

}  // namespace kw::runtime
