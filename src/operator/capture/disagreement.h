// What is said where a form does not give what PyTorch does (capture.cpp).
#pragma once

#include "operator/capture/capture.h"

namespace kw::spec {

// Relative error of a form, which is in fp64 as the goldens.
inline constexpr double kAllowed = 1e-9;

// Says why in diagnostics, of a golden case (far ones behind the others) at a row; of what has no
// rows i is negative. False.
bool disagrees(const Capture& capture, size_t golden, int64_t b, int64_t h, int64_t i, double error,
               Diagnostics& diagnostics);

// Refuses a function whose gradient is NaN or infinite where a key is kept, in PyTorch or by the
// chain rule. False.
bool refuse_undefined(const Capture& capture, const Output& output, size_t golden, int64_t b,
                      int64_t h, int64_t i, Diagnostics& diagnostics);

}  // namespace kw::spec
