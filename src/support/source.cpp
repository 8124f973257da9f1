// Places are computed by scanning: files here have a few hundred lines, and only errors ask.
#include "support/source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

namespace kw {
namespace {

// By pieces: a pipe or a device does not say how long it is.
bool read_all(std::istream& from, size_t most, std::string& text) {
  std::array<char, 1 << 16> piece;
  while (from) {
    from.read(piece.data(), piece.size());
    const size_t got = static_cast<size_t>(from.gcount());
    if (got > most - text.size()) {
      errno = EFBIG;
      return false;
    }
    text.append(piece.data(), got);
  }
  return !from.bad();
}

}  // namespace

std::string_view Span::text() const {
  if (!source) return {};
  return std::string_view(source->text).substr(begin, end - begin);
}

Position Span::start() const {
  Position at;
  if (!source) return at;
  const size_t stop = std::min<size_t>(begin, source->text.size());
  for (size_t i = 0; i < stop; ++i) {
    if (source->text[i] == '\n') {
      ++at.line;
      at.column = 1;
    } else {
      ++at.column;
    }
  }
  return at;
}

std::string Span::place() const {
  if (!source) return "<no place>";
  const Position at = start();
  return source->name + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

SourcePtr make_source(std::string name, std::string text) {
  return std::make_shared<const Source>(Source{std::move(name), std::move(text)});
}

SourcePtr read_source(const std::string& path, size_t most) {
  std::string text;
  if (path == "-")
    return read_all(std::cin, most, text) ? make_source("<stdin>", std::move(text)) : nullptr;
  std::ifstream file(path, std::ios::binary);
  if (!file || !read_all(file, most, text)) return nullptr;
  return make_source(path, std::move(text));
}

std::string why_not_read(int error) {
  if (error == EFBIG) return "it has more than " + std::to_string(kLargestText) + " bytes";
  return std::strerror(error);
}

std::string_view line_of(const Source& source, int line) {
  std::string_view text = source.text;
  for (; line > 1; --line) {
    const size_t newline = text.find('\n');
    if (newline == std::string_view::npos) return {};
    text.remove_prefix(newline + 1);
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace kw
