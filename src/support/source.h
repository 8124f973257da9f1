// Source text and places in it.
//
// Every node of every language in this project (TL, a CUDA kernel, a spec's graph) knows the text
// it came from. A Span keeps its Source alive, so a diagnostic can be rendered long after the
// reader that made it is gone. Offsets are bytes; lines and columns are computed only when shown.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kw {

struct Source {
  std::string name;  // as the user typed it: a path, or "<stdin>"
  std::string text;
};
using SourcePtr = std::shared_ptr<const Source>;

struct Position {
  int line = 1, column = 1;  // both count from 1; columns are bytes
};

struct Span {
  SourcePtr source;
  uint32_t begin = 0, end = 0;

  bool known() const { return source != nullptr; }
  std::string_view text() const;
  Position start() const;
  // "file.cu:12:5", or "<no place>".
  std::string place() const;
};

SourcePtr make_source(std::string name, std::string text);

// What a text has at most, in bytes: a device that never ends, or a file given by mistake, is not
// read until memory is short.
inline constexpr size_t kLargestText = size_t{64} << 20;

// Reads a file, a pipe or a device ("-" reads standard input) of at most `most` bytes. Returns null
// and leaves errno when it cannot: EFBIG of one that has more.
SourcePtr read_source(const std::string& path, size_t most = kLargestText);

// Why read_source gave nothing, of the errno that it left: "it has more than 67108864 bytes".
std::string why_not_read(int error);

// The text of line `line` (from 1) without its newline; empty past the end.
std::string_view line_of(const Source& source, int line);

}  // namespace kw
