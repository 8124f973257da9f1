#include "propose/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <vector>

#include "tl/laws/laws.h"
#include "tl/scope/functions.h"
#include "tl/syntax/precedence.h"

namespace kw::propose {
namespace {

// What a person would call what stands in a hole.
std::string_view word_for(std::string_view kind) {
  static const std::map<std::string_view, std::string_view> words = {
      {"expr", "expression"},
      {"exprs", "expressions"},
      {"num", "number"},
      {"size", "constant"},
      {"new", "new name"},
      {"news", "new names"},
      {"atom", "name or number"},
      {"sum", "sum"},
      {"inits", "NAME = EXPR, ..."},
      {"lets", "NAME = EXPR, ..."},
      {"rows", "NAME or NAME = EXPR, ..."},
      {"values", "NAME, ..."},
      {"value", " = EXPR or nothing"},
      {"tiles", "NAME or NAME[SIZE], ..."},
      {"dims", "letters"},
      {"access", "in/out/scratch TYPE"},
      {"params", "NAME: TYPE, ..."},
      {"fn", "function"},
      {"result", "record or index"},
      {"map", "expression of an element"},
      {"left", "operand or shared tile"},
      {"slot", "slot of a row ring"},
      {"vector", "row or lane sum"},
      {"filled", "argument"},
      {"tiled", "tiled argument"},
      {"tensor", "tensor argument"},
      {"shared", "shared tile"}};
  const auto found = words.find(kind);
  return found == words.end() ? kind : found->second;
}

std::string spelling(const tl::Row& row) {
  std::string out;
  for (const tl::Part& p : row.tl.pieces)
    out += p.hole()
               ? (p.first || p.kind == "value" ? fmt::format("<{}: {}>", p.text, word_for(p.kind))
                                               : fmt::format("<{}>", p.text))
               : p.text;
  return out;
}

const char* name_of(tl::Block block) {
  switch (block) {
    case tl::Block::top:
      return "At the top of a module";
    case tl::Block::args:
      return "In args:";
    case tl::Block::shared:
      return "In shared:";
    default:
      return "In the blocks of functions, kernels, loops and steps";
  }
}

std::string operators_of(int level) {
  static constexpr std::string_view all[] = {"or", "and", "==", "!=", "<",  "<=", ">",
                                             ">=", "&",   "|",  "^",  "<<", ">>", "+",
                                             "-",  "*",   "/",  "//", "%"};
  std::vector<std::string_view> out;
  for (const std::string_view op : all)
    if (tl::precedence(op) == level) out.push_back(op);
  return fmt::format("{}", fmt::join(out, " "));
}

}  // namespace

bool may_write(const tl::Row& row, tl::Level level) {
  if (row.op == tl::Op::include) return false;
  return level == tl::Level::scheduled ? !row.cuda.empty() : row.level <= level;
}

std::string statements_manual(tl::Level level) {
  std::string out;
  for (const tl::Block block :
       {tl::Block::top, tl::Block::args, tl::Block::shared, tl::Block::body}) {
    std::string lines;
    for (const tl::Row& row : tl::table())
      if (row.where == block && may_write(row, level))
        lines += fmt::format("  {:<16} {}\n", row.word, spelling(row));
    if (lines.empty()) continue;
    out += fmt::format("{}{}:\n{}", out.empty() ? "" : "\n", name_of(block), lines);
  }
  return out;
}

std::string expressions_manual() {
  std::vector<std::string> levels;
  for (const int level :
       {tl::kOr, tl::kAnd, tl::kNot, tl::kComparison, tl::kBits, tl::kSum, tl::kProduct})
    levels.push_back(level == tl::kNot ? "not" : operators_of(level));
  std::string out =
      fmt::format("operators, from the loosest: {}; unary -\n", fmt::join(levels, "; "));
  std::vector<std::string> functions;
  for (const tl::Function& f : tl::all_functions())
    functions.push_back(f.arity ? fmt::format("{}/{}", f.name, f.arity) : std::string(f.name));
  out +=
      fmt::format("functions, with their number of arguments: {}, where(condition, then, else)\n",
                  fmt::join(functions, ", "));
  std::vector<std::string_view> constants;
  for (const tl::Constant& c : tl::all_constants()) constants.push_back(c.name);
  return out + fmt::format("constants: {}, true, false\n", fmt::join(constants, ", "));
}

std::string laws_manual(tl::Level level) {
  std::set<std::string_view> written, every;
  for (const tl::Row& row : tl::table()) {
    every.insert(row.word);
    if (may_write(row, level)) written.insert(row.word);
  }
  std::string out;
  for (const tl::Law& law : tl::laws()) {
    const std::string_view word = law.id.substr(0, law.id.rfind('.'));
    if (written.count(word) || !every.count(word)) out += fmt::format("{}  {}\n", law.id, law.text);
  }
  return out;
}

}  // namespace kw::propose
