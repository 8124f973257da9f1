// CUDA text to a TL program: the get of the lens.
//
// Every token outside comments belongs to a statement of the table, and writing each statement
// gives back exactly its tokens, so two texts with different tokens never give the same program.
// What the tokens mean is up to the vocabulary (kw/kw.cuh, the one file that may be included).
#pragma once
#include <optional>

#include "lift/clang.h"
#include "tl/program.h"
#include "tl/syntax/reader.h"

namespace kw::lift {

// The spans of the statements are places in the CUDA text. Reports and returns nothing for text
// that clang refuses (lift.invalid) and for text that is no statement of TL (lift.unrecognised).
std::optional<tl::Program> lift(const SourcePtr& cuda, const Toolchain& toolchain,
                                Diagnostics& diagnostics);

// Where a statement stands: token numbers, for whoever writes a changed text.
struct Place {
  size_t first = 0, head_end = 0, end = 0;  // its first token; past its own words; past its block
  bool braced = true;
  std::optional<tl::Lambda> lambda;  // of a map
  std::vector<Place> body;           // of the statements in its block
};

struct Lifted {
  tl::Program program;
  std::vector<tl::Token> tokens;
  std::vector<Place> places;  // beside program.body
};

std::optional<Lifted> lift_with_places(const SourcePtr& cuda, const Toolchain& toolchain,
                                       Diagnostics& diagnostics);
// The second half of lifting: statements from the tokens of a text that clang has accepted.
std::optional<Lifted> read_statements(const SourcePtr& cuda, std::vector<tl::Token> tokens,
                                      Diagnostics& diagnostics);

}  // namespace kw::lift
