// The longest common subsequence by dynamic programming, once what both texts begin and end with is
// set aside. Kernels have hundreds of lines and changes are few, so the table is small.
#include "lower/patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace kw::lower {
namespace {

constexpr size_t kContext = 3;

struct Edit {
  char mark;  // ' ', '-' or '+'
  std::string_view line;
};

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

// "@@ -12,3 +14,4 @@": the first line of the old text, counted from 0; or nothing.
std::optional<size_t> start_of_hunk(std::string_view line) {
  size_t first = 0, count = 1;
  const std::string text(line);
  const int read = std::sscanf(text.c_str(), "@@ -%zu,%zu +", &first, &count);
  if (read != 2) return std::nullopt;
  return count == 0 ? first : first - 1;  // of no lines: the one that they follow
}

}  // namespace

Lines split_lines(std::string_view text) {
  Lines out;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    out.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

std::vector<Difference> differences(const Lines& from, const Lines& to) {
  std::vector<Difference> out;
  size_t a = 0, b = 0;
  bool open = false;
  for (const Edit& e : edits(from, to)) {
    if (e.mark != ' ' && !open) out.push_back({a, a, b, b});
    open = e.mark != ' ';
    a += e.mark != '+';
    b += e.mark != '-';
    if (open) out.back().from_end = a, out.back().to_end = b;
  }
  return out;
}

std::optional<std::string> apply_patch(const std::string& from, const std::string& patch) {
  const Lines old = split_lines(from), lines = split_lines(patch);
  std::string out;
  size_t at = 0;  // how many lines of `from` are done
  bool in_hunk = false;
  for (size_t k = 0; k < lines.size(); ++k) {
    std::string_view line = lines[k];
    if (line.starts_with("@@")) {
      const std::optional<size_t> start = start_of_hunk(line);
      if (!start || *start < at || *start > old.size()) return std::nullopt;
      while (at < *start) out += old[at++];
      in_hunk = true;
    } else if (in_hunk && !line.starts_with('\\')) {
      const char mark = line[0];
      line.remove_prefix(1);
      if (k + 1 < lines.size() && lines[k + 1].starts_with('\\')) line.remove_suffix(1);
      if (mark == '+') {
        out += line;
        continue;
      }
      if (at >= old.size() || old[at] != line) return std::nullopt;
      if (mark == ' ') out += line;
      ++at;
    }
  }
  while (at < old.size()) out += old[at++];
  return out;
}

LineChanges line_changes(const std::string& path, const std::string& from, const std::string& to) {
  const std::vector<Edit> all = edits(split_lines(from), split_lines(to));
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
  // Readers of patches take a name with a space in it up to a tab.
  const char* end = path.find(' ') == std::string::npos ? "" : "\t";
  if (!out.patch.empty())
    out.patch = fmt::format("--- a/{0}{1}\n+++ b/{0}{1}\n{2}", path, end, out.patch);
  return out;
}

}  // namespace kw::lower
