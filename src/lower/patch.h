// The difference of two texts, line by line, in the form that `git apply` and `patch` read.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kw::lower {

struct LineChanges {
  int added = 0, removed = 0;
  std::string patch;  // unified, three lines of context; empty for equal texts
};

// `path` is what the patch calls the file, relative to where it will be applied.
LineChanges line_changes(const std::string& path, const std::string& from, const std::string& to);

// The text that a patch of line_changes makes of `from`; nothing where a line of it does not stand
// exactly where the patch says.
std::optional<std::string> apply_patch(const std::string& from, const std::string& patch);

// ---- the pieces

using Lines = std::vector<std::string_view>;

// Lines with their newlines; the last one may have none.
Lines split_lines(std::string_view text);

// Lines [from, from_end) of one text are lines [to, to_end) of the other. Numbers count from 0.
struct Difference {
  size_t from = 0, from_end = 0, to = 0, to_end = 0;
};

// In order, and apart by at least one line that both texts have.
std::vector<Difference> differences(const Lines& from, const Lines& to);

}  // namespace kw::lower
