// Places are computed by scanning: files here have a few hundred lines, and only errors ask.
#include "support/source.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>

namespace kw {

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

SourcePtr read_source(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return make_source("<stdin>", text.str());
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return nullptr;
  text << file.rdbuf();
  if (file.bad()) return nullptr;
  return make_source(path, text.str());
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
