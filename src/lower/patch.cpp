// The longest common subsequence by dynamic programming, once what both texts begin and end with is
// set aside. Kernels have hundreds of lines and changes are few, so the table is small.
#include "lower/patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace kw::lower {
namespace {

constexpr size_t kContext = 3;

// A line with its newline, which the last one may lack.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    out.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

struct Edit {
  char mark;  // ' ', '-' or '+'
  std::string_view line;
};

using Lines = std::vector<std::string_view>;

void edits_between(const Lines& a, const Lines& b, size_t first, size_t a_end, size_t b_end,
                   std::vector<Edit>& out) {
  const size_t n = a_end - first, m = b_end - first;
  std::vector<std::vector<int>> common(n + 1, std::vector<int>(m + 1, 0));
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;)
      common[i][j] = a[first + i] == b[first + j] ? common[i + 1][j + 1] + 1
                                                  : std::max(common[i + 1][j], common[i][j + 1]);
  for (size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && a[first + i] == b[first + j]) {
      out.push_back({' ', a[first + i]});
      ++i, ++j;
    } else if (i < n && (j == m || common[i + 1][j] >= common[i][j + 1])) {
      out.push_back({'-', a[first + i++]});
    } else {
      out.push_back({'+', b[first + j++]});
    }
  }
}

std::vector<Edit> edits(const Lines& a, const Lines& b) {
  size_t first = 0, a_end = a.size(), b_end = b.size();
  while (first < a_end && first < b_end && a[first] == b[first]) ++first;
  while (a_end > first && b_end > first && a[a_end - 1] == b[b_end - 1]) --a_end, --b_end;
  std::vector<Edit> out;
  for (size_t k = 0; k < first; ++k) out.push_back({' ', a[k]});
  edits_between(a, b, first, a_end, b_end, out);
  for (size_t k = a_end; k < a.size(); ++k) out.push_back({' ', a[k]});
  return out;
}

std::string hunk(const std::vector<Edit>& all, size_t from, size_t to) {
  size_t old_line = 1, new_line = 1, old_count = 0, new_count = 0;
  std::string body;
  for (size_t k = 0; k < to; ++k) {
    const Edit& e = all[k];
    if (k < from) {
      old_line += e.mark != '+';
      new_line += e.mark != '-';
      continue;
    }
    old_count += e.mark != '+';
    new_count += e.mark != '-';
    body += e.mark + std::string(e.line);
    if (!e.line.ends_with('\n')) body += "\n\\ No newline at end of file\n";
  }
  return fmt::format("@@ -{},{} +{},{} @@\n{}", old_count ? old_line : old_line - 1, old_count,
                     new_count ? new_line : new_line - 1, new_count, body);
}

}  // namespace

LineChanges line_changes(const std::string& path, const std::string& from, const std::string& to) {
  const std::vector<Edit> all = edits(lines_of(from), lines_of(to));
  LineChanges out;
  for (size_t k = 0; k < all.size(); ++k) {
    if (all[k].mark == ' ') continue;
    // A hunk goes on while the next change is within two contexts.
    size_t last = k;
    for (size_t next = k; next < all.size() && next <= last + 2 * kContext + 1; ++next) {
      if (all[next].mark == ' ') continue;
      last = next;
      ++(all[next].mark == '+' ? out.added : out.removed);
    }
    const size_t begin = k > kContext ? k - kContext : 0;
    const size_t end = std::min(last + kContext + 1, all.size());
    out.patch += hunk(all, begin, end);
    k = last;
  }
  if (!out.patch.empty()) out.patch = fmt::format("--- a/{}\n+++ b/{}\n{}", path, path, out.patch);
  return out;
}

}  // namespace kw::lower
