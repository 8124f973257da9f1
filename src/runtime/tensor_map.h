// The geometry of one tensor map: see pack.h.
#pragma once
#include "runtime/pack.h"

namespace kw::runtime {

// Reports launch.stride by the argument's name, with the stride that the copy engine cannot take.
std::optional<TensorMapGeometry> tensor_map_geometry(const Argument& argument,
                                                     const TensorView& tensor,
                                                     Diagnostics& diagnostics);

}  // namespace kw::runtime
