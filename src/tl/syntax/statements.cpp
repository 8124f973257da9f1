// Reading walks the row's pattern; the gate of lifting is gives_back(). What the gate refuses
// beyond other tokens is text that means something else in C than in TL: a name that hides itself
// in its own value, a loop whose bounds mention its counter, a local that hides `args`.
#include "tl/syntax/statements.h"

#include <algorithm>
#include <set>

namespace kw::tl {
namespace {

bool same(const Field& a, const Field& b) {
  Stmt x{Op::let, {a}, {}, {}}, y{Op::let, {b}, {}, {}};
  return equal_heads(x, y);
}

Field* find(Stmt& stmt, Hole hole) {
  for (Field& f : stmt.fields)
    if (f.hole == hole) return &f;
  return nullptr;
}

bool read_part(const Part& part, Reader& r, Stmt& stmt) {
  if (!part.hole()) return r.expect(part.text);
  Field* known = find(stmt, part.name);
  if (part.kind == "value") return read_hole(r, part.kind, stmt, *known);
  const size_t first = r.at;
  Field field{part.name, {}};
  if (!read_hole(r, part.kind, stmt, field)) return false;
  if (!known) {
    stmt.fields.push_back(std::move(field));
    return true;
  }
  if (same(*known, field)) return true;
  r.at = first;
  return r.fail("'" + part.text + "' is another one than before");
}

// Fields in the order of the TL spelling, whichever spelling they were read from.
void sort_fields(const Row& row, Stmt& stmt) {
  const auto place = [&](const Field& f) {
    return std::find(row.holes.begin(), row.holes.end(), f.hole);
  };
  std::stable_sort(stmt.fields.begin(), stmt.fields.end(),
                   [&](const Field& a, const Field& b) { return place(a) < place(b); });
}

bool gives_back(const Stmt& stmt, Reader& r, const Scope& before, size_t first,
                const std::vector<Token>& tokens) {
  std::string problem;
  const Lambda* lambda = r.lambda ? &*r.lambda : nullptr;
  const std::optional<std::string> text = print_cuda(stmt, before, lambda, problem);
  if (!text) {
    r.whole = true;
    return r.fail(problem);
  }
  std::vector<Token> words = lex(*text, Spelling::cuda);
  if (!r.braced) words.pop_back();
  for (size_t k = 0; k < words.size() || first + k < r.at; ++k) {
    if (k < words.size() && first + k < r.at && words[k].text == tokens[first + k].text) continue;
    r.at = std::min(first + k, r.at);
    return r.fail("the canonical text here is '" + *text + "'");
  }
  return true;
}

// In C a loop's counter hides an outer name of the loop's own bounds.
bool hides_itself(const Stmt& s, std::string& name) {
  const bool down = s.op == Op::range_down_counted || s.op == Op::range_down_rolled;
  if (!down && s.op != Op::range) return false;
  name = s.index();
  return mentions(s.end(), name) || (down && mentions(s.begin(), name));
}

// Names that the CUDA text has for itself: a local of that name would hide them.
const std::string* taken_name(const Stmt& s) {
  static const std::set<std::string> taken = {"args", "shared", "warpgroup", "kw", "element"};
  for (const Field& f : s.fields)
    for (const Item& i : f.items)
      if (taken.count(i.name) && f.hole != Hole::type) return &i.name;
  return nullptr;
}

}  // namespace

std::optional<Stmt> read_statement(const Row& row, Reader& r) {
  const Pattern& pattern = r.cuda() ? row.cuda : row.tl;
  const size_t first = r.at;
  const Scope before = r.names;
  r.inside_args = row.where == Block::args;
  r.lambda.reset();
  Stmt stmt{row.op, {}, {}, {}};
  r.braced = true;
  for (size_t k = 0; k < pattern.parts.size(); ++k) {
    const bool last = k + 1 == pattern.parts.size();
    if (last && r.cuda() && row.optional_braces && r.peek() != "{")
      r.braced = false;
    else if (!read_part(pattern.parts[k], r, stmt))
      return std::nullopt;
  }
  sort_fields(row, stmt);
  stmt.span = r.span(first);
  if (r.cuda() && !gives_back(stmt, r, before, first, r.tokens())) return std::nullopt;
  return stmt;
}

std::optional<std::string> print_cuda(const Stmt& stmt, const Scope& scope, const Lambda* lambda,
                                      std::string& problem) {
  const Row& r = row(stmt.op);
  CudaWriter w(&scope);
  w.inside_args = r.where == Block::args;
  std::string out, hidden;
  if (r.cuda.empty()) w.fail("'" + std::string(r.word) + "' exists only before scheduling");
  if (const std::string* name = taken_name(stmt))
    w.fail("'" + *name + "' is a name that every kernel's CUDA text has for itself");
  if (hides_itself(stmt, hidden))
    w.fail("the bounds of the loop over '" + hidden + "' mention an outer '" + hidden + "'");
  for (const Part& p : r.cuda.pieces) {
    if (w.failed()) break;
    const Field* f = nullptr;
    for (const Field& field : stmt.fields)
      if (p.hole() && field.hole == p.name) f = &field;
    out += f ? write_cuda_hole(w, p.kind, stmt, *f, lambda) : p.text;
  }
  problem = w.problem;
  return w.failed() ? std::nullopt : std::optional(out);
}

}  // namespace kw::tl
