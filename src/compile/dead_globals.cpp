// Which global variables of a PTX text no instruction can reach.
//
// A definition stands on one line that begins with a dot; instructions are indented:
//   .global .align 4 .u32 BM = 128;
//   .visible .global .align 8 .b8 table[16] = {1, 2};
// A variable is dead when its name is nowhere else in the text. Comments and other initialisers
// count as uses, which errs on the side of refusing.
#include <cctype>
#include <map>

#include "compile/nvrtc.h"

namespace kw::runtime {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

std::map<std::string_view, int> count_words(std::string_view text) {
  std::map<std::string_view, int> count;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && in_word(text[end])) ++end;
    if (end > i) ++count[text.substr(i, end - i)];
    i = end + 1;
  }
  return count;
}

// The name that a line defines in the global space; empty for any other line.
std::string_view defined_global(std::string_view line) {
  if (line.empty() || line[0] != '.' || line.find(".global ") == std::string_view::npos) return {};
  line = line.substr(0, line.find_first_of("=;["));
  while (!line.empty() && !in_word(line.back())) line.remove_suffix(1);
  size_t begin = line.size();
  while (begin > 0 && in_word(line[begin - 1])) --begin;
  return line.substr(begin);
}

}  // namespace

std::vector<std::string> dead_globals(std::string_view ptx) {
  const std::map<std::string_view, int> uses = count_words(ptx);
  std::vector<std::string> dead;
  for (size_t at = 0; at < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', at), ptx.size());
    const std::string_view name = defined_global(ptx.substr(at, end - at));
    if (!name.empty() && uses.at(name) == 1) dead.emplace_back(name);
    at = end + 1;
  }
  return dead;
}

}  // namespace kw::runtime
