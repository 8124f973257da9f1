// A TL program and the expert's text to CUDA: the put of the lens.
//
// The reference is lifted again and aligned with the program. A statement that still has the
// reference's tokens keeps its bytes; a changed one is changed in its smallest range of tokens; a
// new one is written in one line with the indentation of its neighbours. Comments, blank lines,
// braces and the names of lambda parameters stay the expert's.
//
// The result is lifted once more and must be `program` again: what comes out of lower() means what
// was put in, up to the vocabulary and the compilers.
#pragma once
#include <optional>
#include <string>

#include "lift/lift.h"
#include "lower/patch.h"

namespace kw::lower {

struct Lowered {
  std::string text;
  LineChanges changes;  // against the reference, whose name the patch uses
  int lines = 0;        // of the text
  tl::Program lifted;   // from the text: the program, with places in it
};

// Reports and returns nothing if the reference cannot be lifted, if a statement has no CUDA
// spelling (lower.unspellable, at its place in the program), or if clang refuses the result.
// Warns (lower.stale_comment) of comments beside changed statements, other than constants
// whose values alone changed.
std::optional<Lowered> lower(const tl::Program& program, const SourcePtr& reference,
                             const lift::Toolchain& toolchain, Diagnostics& diagnostics);

// Without a reference: the text of print_cuda (print_module.h), held to the same law. `changes` is
// empty. Reports and returns nothing likewise.
std::optional<Lowered> lower_alone(const tl::Program& program, const lift::Toolchain& toolchain,
                                   Diagnostics& diagnostics);

}  // namespace kw::lower
