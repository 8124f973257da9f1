// The expert's text around the tokens: lines, indentation, comments.
#pragma once
#include <string>
#include <string_view>

namespace kw::lower {

size_t line_begin(std::string_view text, size_t at);
size_t line_end(std::string_view text, size_t at);  // of its newline, or the text's end

// The white space before the first word of the line.
std::string indent_of(std::string_view text, size_t at);

// Nothing but white space, or a comment, from `at` to the end of the line.
bool ends_line(std::string_view text, size_t at);
// Nothing but white space between the start of the line and `at`.
bool begins_line(std::string_view text, size_t at);

// The comment that belongs to a statement: behind it on its last line, or on the lines right above
// it. An empty range where there is none.
struct Range {
  size_t begin = 0, end = 0;
};
Range comment_beside(std::string_view text, size_t begin, size_t end);

}  // namespace kw::lower
