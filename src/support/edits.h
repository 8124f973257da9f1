// Small changes of a text, line by line: how planted bugs are written down.
//
//   # A key after the query is kept.                what it is
//   expect: refuted                                 KEY: VALUE, for whoever applies it
//   - map_at s[i, j] from (i0, n * BN) = ...        lines of the text, without indentation ...
//   + map_at s[i, j] from (i0, n * BN) = ...        ... and what stands in their place
//   @2                                              the next `-` lines: their second occurrence
//
// A `+` line's indentation beyond its first space is relative to the first line replaced.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace kw {

struct Edit {
  std::string name, about;  // the file's name without its extension; the first comment
  std::map<std::string, std::string> head;
  struct Hunk {
    int occurrence = 1;
    std::vector<std::string> from, to;
  };
  std::vector<Hunk> hunks;
};

// Reports edit.file.
std::optional<Edit> read_edit(const std::string& path, Diagnostics& diagnostics);

// Reports edit.line for lines that the text does not have.
std::optional<std::string> apply_edit(const Edit& edit, const std::string& text,
                                      Diagnostics& diagnostics);

}  // namespace kw
