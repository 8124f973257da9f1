#pragma once

namespace kw::lift {

// Declarations that stand in for the CUDA toolkit's headers when clang reads a kernel.
extern const char* const kCudaShim;

}  // namespace kw::lift
