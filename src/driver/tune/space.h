// Which constants of a kernel vary when it is tuned, and over which values:
// kernels/<arch>/space.json beside the kernel's text.
//
//   { "about": "...",
//     "axes":  [ {"BM": [128, 256], "CTAS": [1, 2]}, {"PING_PONG": [false, true]} ],
//     "first": [ {"LOADER_REGISTERS": [24, 32], "WARPGROUP_REGISTERS": [240, 160]} ] }
//
// An axis is one or more constants whose lists go together, entry by entry. Every combination of
// the axes is tried. Of an axis under `first` only the first entry that the laws allow is used:
// more registers are never worse than fewer.
#pragma once
#include <optional>
#include <vector>

#include "support/diagnostic.h"
#include "transfer/tile_database.h"

namespace kw::driver {

using Setting = std::vector<transfer::Constant>;
using Axis = std::vector<Setting>;  // the entries, best guess first

struct Space {
  std::vector<Axis> axes, first;
};

// Reports tune.space with the path of the field.
std::optional<Space> read_space(const SourcePtr& source, Diagnostics& diagnostics);

// Every combination of the axes' entries, each as one setting; one empty setting without axes.
std::vector<Setting> combinations(const std::vector<Axis>& axes);

}  // namespace kw::driver
