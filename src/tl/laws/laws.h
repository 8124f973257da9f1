// The laws of TL: what a well-formed program obeys before anybody runs it.
//
// A law is numbered `<word>.C<n>`; the number stands in laws.def with its sentence, in
// docs/tl/statements.md, in the check (laws_*.cpp), in the diagnostic and in a test. Only what can
// be decided exactly from the text is a law; values, deadlocks and origins are found by running the
// program.
//
// What is checked, and where:
//   names.cpp         names: declared once, before use, of the kind that a statement needs
//   types.cpp         expressions: int, real, bool and record never mix silently
//   declarations.cpp  the head, arguments, shared memory, functions, the kernel, its budgets
//   control.cpp       warpgroups, threads, loops, branches, steps, values
//   copies.cpp        copies: shapes, element types, barriers
//   cluster.cpp       clusters: their meetings, dealt blocks, one number of CTAs
//   products.cpp      products: shapes, operand and accumulator
//   maps.cpp          maps and row vectors
//   sync.cpp          barriers and queues: who fills, who waits, how many arrive
//   launch.cpp        what sizes, blocks, counters and data may decide
//   flow.cpp          along every path: products in flight, tiles on their way out
#pragma once
#include <string_view>
#include <vector>

#include "tl/program.h"

namespace kw::tl {

struct Law {
  std::string_view id;    // "wgmma.C3"
  std::string_view text;  // one sentence, with the formula
};

// In the order of laws.def.
const std::vector<Law>& laws();
// Null if there is no law of this number.
const Law* law(std::string_view id);

// Whether the program obeys every law; reports each breach at the place that is to blame, with the
// other place as a note.
bool verify(const Program& program, Diagnostics& diagnostics);

}  // namespace kw::tl
