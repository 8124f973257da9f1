// The largest size of a launch: what proofs are about (docs/soundness.md, the obligations) is what
// the launchers, the runtime's and launch.h, take. Python has it as LARGEST_SIZE
// (runtime/launch.py).
#pragma once
#include <cstdint>

namespace kw {

// Of what tensors' shapes give: batches, heads, rows, keys, lengths of tables.
inline constexpr int64_t kLargestSize = int64_t{1} << 24;

}  // namespace kw
