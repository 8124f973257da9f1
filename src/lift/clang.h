// What clang says about a CUDA text: whether it is valid, and its tokens.
//
// libclang's C interface is loaded at run time, so that neither building nor installing needs one
// version of LLVM; `pip install libclang` is enough. The kernel is read for one device with the
// device vocabulary from `include`, and nothing of the CUDA toolkit: shim.cpp declares the thirty
// built-in functions that the vocabulary uses.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "support/diagnostic.h"
#include "tl/syntax/lexer.h"

namespace kw::lift {

struct Toolchain {
  std::string include;                // the folder that holds kw/kw.cuh
  std::vector<std::string> libclang;  // libraries to try, in order
};

// Where libclang may be: the file in $KERNELWRIGHT_LIBCLANG and nothing else if that is set; else
// the wheel of $VIRTUAL_ENV and of `environments` (folders of virtual environments), then the
// system's, newest first.
Toolchain find_toolchain(std::string include, const std::vector<std::string>& environments = {});

// "clang version 19.1.7 ..."; reports and returns nothing where no library can be loaded.
std::optional<std::string> clang_version(const Toolchain& toolchain, Diagnostics& diagnostics);

// The tokens of a valid CUDA text but for comments; a "\n" token closes each preprocessor
// directive. Reports clang's errors (lift.invalid) and returns nothing if there are any.
std::optional<std::vector<tl::Token>> cuda_tokens(const SourcePtr& cuda, const Toolchain& toolchain,
                                                  Diagnostics& diagnostics);

}  // namespace kw::lift
