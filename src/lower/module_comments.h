// The comments of a file that print_cuda writes: what can be said truthfully from the program.
#pragma once
#include <map>
#include <string>

#include "tl/program.h"

namespace kw::lower {

class Comments {
 public:
  explicit Comments(const tl::Program& program);

  // What the kernel computes, who computes it and with which instructions, and the shared memory,
  // in lines of comments. Ends with a newline.
  std::string opening() const;

  // What stands behind a statement, or nothing: what arguments, constants and tiles are is known by
  // what is written of them and done with them, never by their names alone.
  std::string beside(const tl::Stmt& stmt) const;

 private:
  void note_tiles();
  void note_constants();
  void note_rows();
  void note(const std::string& name, const std::string& role);

  const tl::Program& program_;
  std::map<std::string, std::string> roles_;  // of constants, shared tiles and row vectors
};

}  // namespace kw::lower
