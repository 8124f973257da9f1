// Which files a CUDA text asks the preprocessor for, found before any preprocessor runs.
//
// A compiler follows `#include "/any/file"` wherever it points, and its errors repeat words of what
// it found there. So every text that is lifted or built is read here first: it may include files of
// the device vocabulary, kw/, and nothing else may ask for a file or hide that it does.
//
// What is hard is to see each directive that a compiler sees. Where compilers differ, or where a
// text could be read in two ways, it is refused: trigraphs, raw strings, a line that ends in a
// backslash and blanks, a carriage return alone.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace kw {

struct FileAsked {
  size_t at = 0;        // in the text
  std::string message;  // what it asks for, and what it may
};

// The first place of `text` that asks for a file outside of kw/. `name` is its own, below the
// folder that kw/ is in: a header "kw/tile/x.cuh" may include "../ptx/y.cuh"; a kernel is in no
// folder. With `angled`, it may also include <folder/file>: what a compiler looks for in the
// folders that it is given, and nowhere else.
std::optional<FileAsked> asks_for_a_file(std::string_view name, std::string_view text,
                                         bool angled = false);

// The first place of `text` that defines a macro, or uses one of the vocabulary's (KW_...): a
// preprocessor expands without a bound, and forty lines make 2^40 words. Where texts can be read in
// two ways the first that asks_for_a_file() refuses comes first.
std::optional<FileAsked> has_macros(std::string_view text);

}  // namespace kw
