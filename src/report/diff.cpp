// Within a run of changed lines, old and new ones are paired by what they share, in order: the
// pairing that shares most words (dynamic programming; runs are short). In a pair the words that
// differ are marked.
#include "report/diff.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "support/lines.h"

namespace kw::report {
namespace {

using Lines = std::vector<std::string>;

// Names, numbers, runs of blanks, and single other characters.
Lines words_of(const std::string& line) {
  Lines out;
  const auto kind = [](char c) {
    return std::isalnum(uint8_t(c)) || c == '_' || uint8_t(c) >= 0x80 ? 1 : c == ' ' ? 2 : 0;
  };
  for (const char c : line) {
    const bool joins = !out.empty() && kind(c) != 0 && kind(out.back().back()) == kind(c);
    if (joins)
      out.back() += c;
    else
      out.push_back(std::string(1, c));
  }
  return out;
}

// best[i][j]: the most that a[i...] and b[j...] share, `worth` of each pair.
template <class Worth>
std::vector<std::vector<double>> best_pairing(size_t n, size_t m, const Worth& worth) {
  std::vector<std::vector<double>> best(n + 1, std::vector<double>(m + 1, 0));
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;)
      best[i][j] = std::max({best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + worth(i, j)});
  return best;
}

// Calls f(i, j) along the best pairing, with -1 for a side that has no partner.
template <class Worth, class F>
void pair_up(size_t n, size_t m, const Worth& worth, const F& f) {
  const auto best = best_pairing(n, m, worth);
  for (size_t i = 0, j = 0; i < n || j < m;) {
    const double w = i < n && j < m ? worth(i, j) : 0;
    if (w > 0 && best[i][j] == best[i + 1][j + 1] + w)
      f(int(i++), int(j++));
    else if (i < n && (j == m || best[i][j] == best[i + 1][j]))
      f(int(i++), -1);
    else
      f(-1, int(j++));
  }
}

bool is_blank(const std::string& word) { return word[0] == ' '; }

// The share of words, blanks apart, that two lines have in common, in order; 0 below a third.
double alike(const std::string& x, const std::string& y) {
  Lines a = words_of(x), b = words_of(y);
  std::erase_if(a, is_blank);
  std::erase_if(b, is_blank);
  if (a.empty() || b.empty()) return 0;
  const auto best = best_pairing(a.size(), b.size(),
                                 [&](size_t i, size_t j) { return a[i] == b[j] ? 1.0 : 0.0; });
  const double share = 2 * best[0][0] / double(a.size() + b.size());
  return share < 1.0 / 3 ? 0 : share;
}

void add_changed(const Lines& gone, const Lines& come, int old_line, int new_line, Diff& out) {
  std::vector<std::vector<double>> worth(gone.size(), std::vector<double>(come.size()));
  for (size_t i = 0; i < gone.size(); ++i)
    for (size_t j = 0; j < come.size(); ++j) worth[i][j] = alike(gone[i], come[j]);
  pair_up(
      gone.size(), come.size(), [&](size_t i, size_t j) { return worth[i][j]; },
      [&](int i, int j) {
        out.rows.push_back({i < 0 ? 0 : old_line + i, j < 0 ? 0 : new_line + j,
                            i < 0 ? "" : gone[i], j < 0 ? "" : come[j], true});
      });
  out.removed += int(gone.size());
  out.added += int(come.size());
}

// A pair of lines with the words that only one of them has marked.
struct MarkedPair {
  Markup old_line, new_line;
};
MarkedPair mark(const std::string& old_line, const std::string& new_line) {
  const Lines a = words_of(old_line), b = words_of(new_line);
  MarkedPair out;
  std::string gone, come;  // runs of words, marked as one
  const auto flush = [&] {
    if (!gone.empty()) out.old_line += html("<del>{}</del>", gone);
    if (!come.empty()) out.new_line += html("<ins>{}</ins>", come);
    gone.clear(), come.clear();
  };
  pair_up(
      a.size(), b.size(),
      [&](size_t i, size_t j) { return a[i] != b[j]     ? 0.0
                                       : is_blank(a[i]) ? 0.1
                                                        : 1.0; },
      [&](int i, int j) {
        if (i >= 0 && j >= 0) {
          flush();
          out.old_line += escape(a[i]);
          out.new_line += escape(b[j]);
        } else {
          (i >= 0 ? gone : come) += i >= 0 ? a[i] : b[j];
        }
      });
  flush();
  return out;
}

std::string number_or_blank(int line) { return line ? std::to_string(line) : ""; }

std::string at(const std::map<int, std::string>& statements, int line) {
  const auto found = statements.find(line);
  return found == statements.end() ? "" : found->second;
}

Markup row(const DiffRow& r, const std::map<int, std::string>& old_tl,
           const std::map<int, std::string>& new_tl) {
  const std::string before = at(old_tl, r.old_line), after = at(new_tl, r.new_line);
  Markup tl;
  if (r.changed && !before.empty() && before != after)
    tl += html("<span class=\"gone\">{}</span>", before);
  if (!after.empty()) tl += html("<span>{}</span>", after);
  if (!r.changed)
    return html(
        "<div class=\"row\"><code class=\"old\" data-line=\"{}\">{}</code>"
        "<code class=\"new\" data-line=\"{}\">{}</code><code class=\"tl\">{}</code></div>\n",
        r.old_line, r.old_text, r.new_line, r.new_text, tl);
  const bool both = r.old_line && r.new_line;
  const MarkedPair pair =
      both ? mark(r.old_text, r.new_text) : MarkedPair{escape(r.old_text), escape(r.new_text)};
  return html(
      "<div class=\"row changed\"><code class=\"old{}\" data-line=\"{}\">{}</code>"
      "<code class=\"new{}\" data-line=\"{}\">{}</code><code class=\"tl\">{}</code></div>\n",
      r.old_line ? "" : " none", number_or_blank(r.old_line), pair.old_line,
      r.new_line ? "" : " none", number_or_blank(r.new_line), pair.new_line, tl);
}

}  // namespace

std::optional<Diff> read_patch(const std::string& patch, const std::string& old_text,
                               const std::string& new_text) {
  const Lines from = lines_of(old_text), to = lines_of(new_text), lines = lines_of(patch);
  Diff out;
  out.lines = int(to.size());
  size_t i = 0, j = 0;  // lines that have been gone through
  const auto unchanged = [&](size_t until) {
    for (; i < until && i < from.size() && j < to.size(); ++i, ++j)
      out.rows.push_back({int(i) + 1, int(j) + 1, from[i], to[j], false});
  };
  for (size_t k = 0; k < lines.size(); ++k) {
    int first = 0, lines_of_old = 1;
    if (std::sscanf(lines[k].c_str(), "@@ -%d,%d", &first, &lines_of_old) < 1)
      continue;  // the files' names
    unchanged(size_t(std::max(0, lines_of_old ? first - 1 : first)));
    for (++k; k < lines.size() && !lines[k].starts_with("@@"); ++k) {
      Lines gone, come;
      for (; k < lines.size() && (lines[k][0] == '-' || lines[k][0] == '+'); ++k)
        (lines[k][0] == '-' ? gone : come).push_back(lines[k].substr(1));
      if (gone.empty() && come.empty()) {
        if (lines[k][0] == ' ') unchanged(i + 1);
        continue;
      }
      --k;
      if (gone.size() + i > from.size() || come.size() + j > to.size()) return std::nullopt;
      add_changed(gone, come, int(i) + 1, int(j) + 1, out);
      i += gone.size(), j += come.size();
    }
    --k;
  }
  unchanged(from.size());
  // Held against both texts, line by line.
  for (const DiffRow& r : out.rows) {
    if (r.old_line && from[r.old_line - 1] != r.old_text) return std::nullopt;
    if (r.new_line && to[r.new_line - 1] != r.new_text) return std::nullopt;
    if (!r.changed && r.old_text != r.new_text) return std::nullopt;
  }
  return i == from.size() && j == to.size() ? std::optional(out) : std::nullopt;
}

std::map<int, std::string> statements_by_line(const tl::Program& program) {
  std::map<int, std::string> out;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    if (!s.span.known()) return;
    std::string& there = out[s.span.start().line];
    if (!there.empty()) there += "\n";
    there += tl::print_head(s);
  });
  return out;
}

Markup diff_table(const Diff& diff, const std::map<int, std::string>& old_tl,
                  const std::map<int, std::string>& new_tl) {
  constexpr int kContext = 3, kFewest = 4;  // lines around a change; hidden at a time
  const int n = int(diff.rows.size());
  std::vector<bool> near(n, false);
  for (int k = 0; k < n; ++k)
    for (int c = std::max(0, k - kContext); c <= std::min(n - 1, k + kContext); ++c)
      near[k] = near[k] || diff.rows[c].changed;
  Markup out;
  for (int k = 0; k < n;) {
    int end = k;
    while (end < n && near[end] == near[k]) ++end;
    Markup rows;
    for (int c = k; c < end; ++c) rows += row(diff.rows[c], old_tl, new_tl);
    out += near[k] || end - k < kFewest
               ? rows
               : html("<details class=\"same\"><summary>{}</summary>\n{}</details>\n",
                      count(end - k, "unchanged line"), rows);
    k = end;
  }
  return html(
      "<div class=\"diff\"><div class=\"row head\"><span>The expert's kernel</span>"
      "<span>The new kernel</span><span>What the line says, in TL</span></div>\n{}</div>\n",
      out);
}

}  // namespace kw::report
