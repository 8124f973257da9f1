// Byte offsets all along: kernels have hundreds of lines, and a scan of one is cheap.
#include "lower/layout.h"

#include <algorithm>

namespace kw::lower {

size_t line_begin(std::string_view text, size_t at) {
  const size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return newline == std::string_view::npos ? 0 : newline + 1;
}

size_t line_end(std::string_view text, size_t at) {
  return std::min(text.find('\n', at), text.size());
}

std::string indent_of(std::string_view text, size_t at) {
  const size_t begin = line_begin(text, at);
  const size_t word = std::min(text.find_first_not_of(" \t", begin), text.size());
  return std::string(text.substr(begin, word - begin));
}

bool ends_line(std::string_view text, size_t at) {
  std::string_view rest = text.substr(at, line_end(text, at) - at);
  for (;;) {
    const size_t word = rest.find_first_not_of(" \t\r");
    if (word == std::string_view::npos || rest.substr(word, 2) == "//") return true;
    const size_t close = rest.substr(word, 2) == "/*" ? rest.find("*/", word + 2) : rest.npos;
    if (close == rest.npos) return false;  // code, or a comment that goes on in the next line
    rest.remove_prefix(close + 2);
  }
}

bool begins_line(std::string_view text, size_t at) {
  const size_t begin = line_begin(text, at);
  return text.substr(begin, at - begin).find_first_not_of(" \t") == std::string_view::npos;
}

Range comment_beside(std::string_view text, size_t begin, size_t end) {
  const size_t newline = line_end(text, end);
  const size_t behind = text.substr(0, newline).find("//", end);
  if (behind != std::string_view::npos && ends_line(text, end)) return {behind, newline};
  Range above{begin, begin};
  for (size_t line = line_begin(text, begin); line > 0;) {
    const size_t previous = line_begin(text, line - 1);
    const size_t word = text.find_first_not_of(" \t", previous);
    if (text.substr(word, 2) != "//") break;
    above = {word, above.end == begin ? line - 1 : above.end};
    line = previous;
  }
  return above.end == begin ? Range{} : above;
}

}  // namespace kw::lower
