// The tensors of one forward and one backward launch, and how many bytes they take at sizes that
// are the same for every function: one batch entry of 4,096 queries and as many keys.
#pragma once
#include "driver/training/halves.h"

namespace kw::driver {

inline constexpr int64_t kSampleRows = 4096;

// {"at": "B 1, M 4096, N 4096", "tensors": [{"name", "is", "dtype", "dims", "bytes"}]}. `is` says
// what for: argument, output, saved, given (an output's gradient), gradient, or scratch of a half.
// `bytes` is null where a size is an argument's own, such as the entries of a table.
Claims memory_of(const Both& both);

}  // namespace kw::driver
