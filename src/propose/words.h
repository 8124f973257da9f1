// Text on its way into a sentence or a prompt: on one line, and no longer than it may be.
#pragma once
#include <string>

namespace kw::propose {

inline std::string clipped(std::string text, size_t most) {
  if (text.size() > most) text = text.substr(0, most - 3) + "...";
  return text;
}

inline std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace kw::propose
