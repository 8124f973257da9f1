// A scheduled TL program in CuTe, the tensor library of CUTLASS: a second spelling beside the one
// in the device vocabulary, for people who build on CUTLASS.
//
// The text is one .cu that includes CUTLASS's headers and nothing of ours. It takes the same bytes
// of arguments, threads and shared memory as the first spelling, so that the same launch.json and
// the same launcher run it. Every statement of TL stands as a comment over its CuTe lines.
//
// What runs where is decided by the atoms: the tensor-core product that the element type asks for,
// the copies that the statements name. A statement that has no spelling is refused, never left out.
//
//   cute.cpp         the order of the text; blocks and control
//   head.cpp         parameters, arguments, shared memory, records
//   hopper.cpp       the copy engine, barriers in shared memory, products under way
//   statements.cpp   copies, products, reductions
//   maps.cpp         element by element
//   expr.cpp         scalar expressions
//   prelude.cpp      the device functions that the statements call
#pragma once
#include <optional>
#include <string>

#include "tl/program.h"

namespace kw::cute {

// The program must obey the laws of TL. Reports cute.unspellable with the statement and the reason,
// cute.name where a name of the program is one that the text has for itself, cute.target where the
// target has no atoms here, and launch.* as the launch plan does; returns nothing then.
std::optional<std::string> print_cute(const tl::Program& program, const std::string& target,
                                      Diagnostics& diagnostics);

}  // namespace kw::cute
