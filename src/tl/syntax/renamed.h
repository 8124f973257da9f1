// Old names of statements and of what the vocabulary declares, so that a text that still has one is
// told the new one instead of "no statement begins like this". Nothing reads an old name as the new
// one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tl/syntax/lexer.h"

namespace kw::tl {

// What `was` is called now; empty where it is no old name.
std::string_view new_name(std::string_view was);

// "`deal` is now `static_tiles`": of the first old name that stands in this TL line where a
// statement has its word; empty where none does. For lines that could not be read: names of one's
// own may be old words.
struct OldName {
  const Token* token = nullptr;
  std::string message;
};
OldName old_name(const std::vector<Token>& line);

}  // namespace kw::tl
