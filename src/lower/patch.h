// The difference of two texts, line by line, in the form that `git apply` and `patch` read.
#pragma once
#include <string>

namespace kw::lower {

struct LineChanges {
  int added = 0, removed = 0;
  std::string patch;  // unified, three lines of context; empty for equal texts
};

// `path` is what the patch calls the file, relative to where it will be applied.
LineChanges line_changes(const std::string& path, const std::string& from, const std::string& to);

}  // namespace kw::lower
