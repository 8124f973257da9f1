// Spellings are cut once, when the table is first asked for. A hole's kind is written at one
// mention of it, in whichever spelling; both patterns know it afterwards.
#include "tl/syntax/table.h"

#include <algorithm>
#include <map>

#include "tl/syntax/lexer.h"

namespace kw::tl {
namespace {

using Kinds = std::map<std::string, std::string>;

// The holes' kinds are given at one mention, in either spelling; the others repeat it.
void collect(std::string_view text, Spelling spelling, Kinds& kinds) {
  for (const Token& t : lex(text, spelling)) {
    const size_t colon = t.text.find(':');
    if (t.text[0] == '$' && colon != std::string::npos)
      kinds.emplace(t.text.substr(1, colon - 1), t.text.substr(colon + 1));
  }
}

Pattern pattern(std::string_view text, Spelling spelling, const Kinds& kinds) {
  Pattern out;
  std::vector<std::string> seen;
  size_t printed = 0;
  for (const Token& t : lex(text, spelling)) {
    if (t.text[0] != '$') {
      out.parts.push_back({t.text});
      continue;
    }
    const size_t colon = t.text.find(':');
    const std::string name = t.text.substr(1, colon - 1);
    // A second mention may have a kind of its own (the value after a type).
    const bool own = spelling == Spelling::tl && colon != std::string::npos;
    const std::string kind = own ? t.text.substr(colon + 1) : kinds.at(name);
    Part part{name, kind, std::find(seen.begin(), seen.end(), name) == seen.end(),
              hole_named(name).value()};
    seen.push_back(name);
    out.parts.push_back(part);
    out.pieces.push_back({std::string(text.substr(printed, t.begin - printed))});
    out.pieces.push_back(part);
    printed = t.end;
  }
  out.pieces.push_back({std::string(text.substr(printed))});
  return out;
}

Row make_row(Op op, std::string_view word, Level level, Block where, Block holds,
             std::string_view cuda, std::string_view tl, std::string_view after) {
  Kinds kinds;
  collect(cuda, Spelling::cuda, kinds);
  collect(tl, Spelling::tl, kinds);
  Row row{op, word, level, where, holds, {}, pattern(tl, Spelling::tl, kinds), {}, {}, false};
  if (!cuda.empty()) row.cuda = pattern(cuda, Spelling::cuda, kinds);
  for (const Token& t : lex(after, Spelling::cuda)) row.after.push_back(t.text);
  for (const Part& p : row.tl.parts)
    if (p.hole() && p.first) row.holes.push_back(p.name);
  const std::string first = row.cuda.empty() ? "" : row.cuda.parts[0].text;
  row.optional_braces = (first == "if" || first == "for" || first == "#") && cuda.ends_with(") {");
  return row;
}

}  // namespace

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
#define OP(NAME, LEVEL, WHERE, HOLDS, FAMILY, BY, EFFECTS, ASYNC, NEEDS, CUDA, TL, AFTER) \
  make_row(Op::NAME, word(Op::NAME), Level::LEVEL, Block::WHERE, Block::HOLDS, CUDA, TL, AFTER),
#include "tl/ops.def"
  };
  return rows;
}

const Row& row(Op op) { return table()[static_cast<size_t>(op)]; }

std::string_view word(Op op) {
  static constexpr std::string_view words[] = {
#define OP(word, level, where, holds, ...) #word,
#include "tl/ops.def"
  };
  std::string_view w = words[static_cast<size_t>(op)];
  if (w.ends_with('_')) w.remove_suffix(1);
  return w;
}

std::string_view word(Hole hole) {
  static constexpr std::string_view words[] = {
#define HOLE(word, what, meaning) #word,
#include "tl/holes.def"
  };
  return words[static_cast<size_t>(hole)];
}

std::optional<Hole> hole_named(std::string_view name) {
  static const std::map<std::string_view, Hole> holes = {
#define HOLE(word, what, meaning) {#word, Hole::word},
#include "tl/holes.def"
  };
  const auto found = holes.find(name);
  return found == holes.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace kw::tl
