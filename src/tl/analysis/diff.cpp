#include "tl/analysis/diff.h"

#include <algorithm>

#include "tl/syntax/lexer.h"
#include "tl/syntax/table.h"

namespace kw::tl {
namespace {

// What alignment compares of a statement, computed once.
struct Face {
  const Stmt* stmt;
  std::string text;                // with its block
  std::vector<std::string> words;  // of its own line, sorted
  std::vector<std::string> lines;  // of its block, sorted
};

Face face(const Stmt& stmt) {
  Face f{&stmt, print(stmt), {}, {}};
  for (const Token& t : lex(print_head(stmt), Spelling::tl)) f.words.push_back(t.text);
  walk(stmt.body, [&](const Stmt& s) { f.lines.push_back(print_head(s)); });
  std::sort(f.words.begin(), f.words.end());
  std::sort(f.lines.begin(), f.lines.end());
  return f;
}

std::vector<Face> faces(const std::vector<Stmt>& body) {
  std::vector<Face> out;
  for (const Stmt& s : body) out.push_back(face(s));
  return out;
}

// Dice's coefficient of two sorted multisets: 1 for equal ones, 0 for disjoint ones.
double alike(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.empty() && b.empty()) return 1;
  std::vector<std::string> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return 2.0 * both.size() / (a.size() + b.size());
}

// Words that are one idea with variants: a change from one to another is a change, not a new
// statement.
Op idea(Op op) {
  static constexpr std::pair<Op, Op> variants[] = {
      {Op::map_at, Op::map},
      {Op::map_real, Op::map},
      {Op::range_down_rolled, Op::range_down_counted},
      {Op::dynamic_tiles, Op::static_tiles},
      {Op::dynamic_tiles_warp, Op::static_tiles},
      {Op::tma_load_pages, Op::tma_load},
      {Op::tma_load_tile, Op::tma_load},
      {Op::tma_load_multicast, Op::tma_load},
      {Op::copy_in, Op::cp_async},
      {Op::copy_tile_in, Op::cp_async_tile},
      {Op::cluster_barrier, Op::barrier},
  };
  for (const auto& [variant, of] : variants)
    if (variant == op) return of;
  return op;
}

// What pairing two statements is worth; 0: they are no pair. Equal ones outweigh all others.
double worth(const Face& a, const Face& b) {
  constexpr double kEqual = 1000, kLeastAlike = 0.35;
  if (a.text == b.text) return kEqual;
  if (idea(a.stmt->op) != idea(b.stmt->op)) return 0;
  const double words = alike(a.words, b.words);
  if (row(a.stmt->op).holds != Block::none) return 0.1 + words + alike(a.lines, b.lines);
  return words < kLeastAlike ? 0 : words;
}

}  // namespace

std::vector<Pair> align(const std::vector<Stmt>& from, const std::vector<Stmt>& to) {
  const std::vector<Face> a = faces(from), b = faces(to);
  const size_t n = a.size(), m = b.size();
  // best[i][j]: the worth of the best pairing of a[i...] with b[j...].
  std::vector<std::vector<double>> pair(n, std::vector<double>(m));
  std::vector<std::vector<double>> best(n + 1, std::vector<double>(m + 1, 0));
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;) {
      pair[i][j] = worth(a[i], b[j]);
      best[i][j] = std::max(best[i + 1][j], best[i][j + 1]);
      if (pair[i][j] > 0) best[i][j] = std::max(best[i][j], best[i + 1][j + 1] + pair[i][j]);
    }
  std::vector<Pair> out;
  for (size_t i = 0, j = 0; i < n || j < m;) {
    const bool both = i < n && j < m;
    if (both && pair[i][j] > 0 && best[i][j] == best[i + 1][j + 1] + pair[i][j])
      out.push_back({a[i++].stmt, b[j++].stmt});
    else if (i < n && (j == m || best[i][j] == best[i + 1][j]))
      out.push_back({a[i++].stmt, nullptr});
    else
      out.push_back({nullptr, b[j++].stmt});
  }
  return out;
}

namespace {

std::string marked(char mark, const Stmt& s, int depth) {
  std::string out;
  const std::string text = print(s, depth);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at) + 1;
    out += mark + (" " + text.substr(at, end - at));
    at = end;
  }
  return out;
}

std::string head_line(char mark, const Stmt& s, int depth) {
  return mark + (" " + std::string(depth * 4, ' ') + print_head(s) + "\n");
}

std::string diff_blocks(const std::vector<Stmt>& from, const std::vector<Stmt>& to, int depth) {
  std::string out;
  for (const Pair& p : align(from, to)) {
    if (!p.to) {
      out += marked('-', *p.from, depth);
    } else if (!p.from) {
      out += marked('+', *p.to, depth);
    } else {
      const std::string inside = diff_blocks(p.from->body, p.to->body, depth + 1);
      if (!equal_heads(*p.from, *p.to))
        out += head_line('-', *p.from, depth) + head_line('+', *p.to, depth) + inside;
      else if (!inside.empty())
        out += head_line(' ', *p.to, depth) + inside;
    }
  }
  return out;
}

}  // namespace

std::string print_diff(const Program& from, const Program& to) {
  return diff_blocks(from.body, to.body, 0);
}

}  // namespace kw::tl
