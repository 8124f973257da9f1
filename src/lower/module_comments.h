// The comments of a file that print_cuda writes: what can be said truthfully from the program.
#pragma once
#include <string>

#include "tl/program.h"

namespace kw::lower {

// What the kernel computes, who computes it and with which instructions, and the shared memory, in
// lines of comments. Ends with a newline.
std::string opening_comment(const tl::Program& program);

// What stands behind a statement, or nothing: the roles of arguments by what is written of them,
// never by their names alone.
std::string comment_of(const tl::Stmt& stmt);

}  // namespace kw::lower
