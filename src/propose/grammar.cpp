// Three parts: the JSON around the lines, a rule for each row of ops.def, and expressions. What a
// statement's hole holds follows src/tl/syntax/holes.cpp, and expressions follow
// src/tl/syntax/reader.cpp; a test draws sentences and reads them with both.
#include "propose/grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "propose/answer.h"
#include "propose/manual.h"
#include "tl/syntax/table.h"

namespace kw::propose {
namespace {

// The text as a GBNF string. Within the answer a line stands in a JSON string; a statement that an
// edit may write has neither quotes nor backslashes, so both spellings are one.
std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return out + "\"";
}

std::string rule(std::string_view name, std::string_view is) {
  return fmt::format("{} ::= {}\n", name, is);
}

// "comma" separated.
std::string several(const std::string& one) { return fmt::format("{0} (\", \" {0})*", one); }

// ---- names that are no words of the language

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz",
                           kDigits = "0123456789";

std::string char_class(const std::set<char>& without, bool digits) {
  std::string all(kLetters);
  if (digits) all = std::string(kDigits) + all;
  std::string out = "[";
  for (size_t k = 0; k < all.size();) {
    if (without.count(all[k])) {
      ++k;
      continue;
    }
    size_t end = k;
    while (end + 1 < all.size() && all[end + 1] == all[end] + 1 && !without.count(all[end + 1]))
      ++end;
    out += end > k + 1 ? fmt::format("{}-{}", all[k], all[end])
                       : std::string(all.substr(k, end + 1 - k));
    k = end + 1;
  }
  return out + "]";
}

// Rules of identifiers that are none of `words`: a context-free grammar has no "but not", so the
// words are spelled out as a tree, which is left at a letter that none goes on with.
void name_rules(const std::string& name, const std::set<std::string>& words, std::string& out,
                const std::string& prefix = "") {
  std::map<char, std::set<std::string>> next;
  for (const std::string& w : words)
    if (w.size() > prefix.size() && w.starts_with(prefix)) next[w[prefix.size()]].insert(w);
  std::set<char> letters;
  std::vector<std::string> ways;
  for (const auto& [c, rest] : next) letters.insert(c);
  ways.push_back(char_class(letters, !prefix.empty()) + " word-rest");
  const std::string own = prefix.empty() ? name : name + "-" + prefix;
  for (const auto& [c, rest] : next) {
    ways.push_back(fmt::format("{} {}-{}", literal(std::string{c}), name, prefix + c));
    name_rules(name, rest, out, prefix + c);
  }
  const bool may_end = !prefix.empty() && !words.count(prefix);
  out += rule(own, fmt::format("{}{}", may_end ? "\"\" | " : "", fmt::join(ways, " | ")));
}

// ---- statements

std::string hole(const std::string& kind) {
  static const std::map<std::string, std::string> rules = {
      {"expr", "expr"},     {"exprs", "exprs"},   {"map", "expr"},    {"num", "integer"},
      {"size", "sum"},      {"sum", "sum"},       {"atom", "atom"},   {"word", "word"},
      {"new", "name"},      {"record", "name"},   {"fn", "name"},     {"step", "name"},
      {"news", "names"},    {"dims", "names"},    {"inits", "inits"}, {"lets", "inits"},
      {"rows", "rows"},     {"values", "names"},  {"tiles", "tiles"}, {"access", "access"},
      {"type", "type"},     {"params", "params"}, {"result", "name"}, {"shared", "place"},
      {"barrier", "place"}, {"left", "place"},    {"slot", "place"}};
  const auto found = rules.find(kind);
  return found == rules.end() ? "name" : found->second;  // the other kinds of names
}

// The row's spelling, its holes filled by `named`; `alone` leaves out a value and its hole.
std::string spelled(const tl::Row& row, bool with_value) {
  std::vector<std::string> out;
  for (size_t k = 0; k < row.tl.pieces.size(); ++k) {
    const tl::Part& p = row.tl.pieces[k];
    if (!p.hole()) {
      if (!p.text.empty()) out.push_back(literal(p.text));
      continue;
    }
    if (p.kind == "value") {
      if (with_value) out.push_back("\" = \" expr");
      continue;
    }
    const bool closes = k + 1 < row.tl.pieces.size() && row.tl.pieces[k + 1].text.starts_with(")");
    const bool stands_alone = p.kind == "values" && with_value;
    out.push_back(stands_alone ? "name" : hole(p.kind) + (p.kind == "exprs" && closes ? "?" : ""));
  }
  return fmt::format("{}", fmt::join(out, " "));
}

// A name of ops.def may end in an underscore, which GBNF's names have not.
std::string rule_of(const tl::Row& row) {
  std::string name = "s-" + std::string(row.word);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string statement_rules() {
  std::vector<std::string> all;
  std::string out;
  for (const tl::Row& row : tl::table()) {
    if (!may_write(row)) continue;
    all.push_back(rule_of(row));
    const bool has_value = std::any_of(row.tl.parts.begin(), row.tl.parts.end(),
                                       [](const tl::Part& p) { return p.kind == "value"; });
    out += rule(rule_of(row),
                spelled(row, false) + (has_value ? " | " + spelled(row, true) : std::string()));
  }
  return rule("statement", fmt::format("{}", fmt::join(all, " | "))) + out;
}

std::string hole_rules() {
  std::string out;
  out += rule("word", "name | \"bf16\" | \"f16\"");  // of an element, too
  out += rule("names", several("name"));
  out += rule("exprs", several("expr"));
  out += rule("init", "name \" = \" expr");
  out += rule("inits", several("init"));
  out += rule("rows", several("(init | name)"));
  out += rule("tiles", several("name (\"[\" expr \"]\")?"));
  out += rule("place", "name (\"[\" expr \"]\")*");
  out += rule("atom", "name | integer");
  out += rule("type",
              "\"real\" | \"f32\" | \"i32\" | \"element\" | \"bool\" | \"i64\" | \"bf16\" | "
              "\"f16\" | \"e4m3\"");
  out += rule("access", "(\"in\" | \"out\" | \"scratch\") \" \" type");
  out += rule("param", "name \": \" (\"i32\" | \"index\" | \"bool\" | \"f32\" | name)");
  out += rule("params", several("param"));
  return out;
}

std::string expression_rules() {
  // Words that are no names, and types, after which nothing can be called. `T` may not follow a
  // point: `k_s[t].T` is a tile transposed.
  static const std::set<std::string> words = {
      "and",   "bool", "bf16", "e4m3", "element", "f16", "f32",  "i32",     "i64",  "if",
      "index", "inf",  "in",   "not",  "or",      "out", "real", "scratch", "size", "where"};
  std::string out;
  out += rule("expr", "conjunction (\" or \" conjunction)*");
  out += rule("conjunction", "negation (\" and \" negation)*");
  out += rule("negation", "\"not \"? comparison");
  out += rule("comparison",
              "side ((\" == \" | \" != \" | \" < \" | \" <= \" | \" > \" | \" >= \") side)?");
  out += rule("side", "sum | bits");
  out += rule("bits", "unary (\" & \" | \" | \" | \" ^ \" | \" << \" | \" >> \") unary");
  out += rule("sum", "product ((\" + \" | \" - \") product)*");
  out += rule("product", "unary ((\" * \" | \" / \" | \" // \" | \" % \") unary)*");
  out += rule("unary", "\"-inf\" | \"-\"? primary (\"[\" exprs \"]\" | \".\" field)*");
  out += rule("primary", "\"(\" expr \")\" | integer | real | call | name");
  out += rule("call",
              "\"where(\" expr \", \" expr \", \" expr \")\" | (name | \"f32\") \"(\" exprs? "
              "\")\"");
  out += rule("integer", "\"0\" | [1-9] [0-9]{0,8}");
  // With these exponents all are fp32's normal numbers, or 0: the reader takes no others.
  out += rule("real", "[0-9]{1,12} \".\" [0-9]{1,12} (\"e\" [-+]? ([01]? [0-9] | \"2\" [0-4]))?");
  out += rule("word-rest", "[0-9A-Z_a-z]{0,60}");
  name_rules("name", words, out);
  name_rules("field", {"T"}, out);
  return out;
}

// ---- the answer

std::string quoted(std::string_view property) { return literal(fmt::format("\"{}\": ", property)); }

std::string answer_rules() {
  const auto edit = [](const std::string& op, const std::string& text) {
    return fmt::format(
        "\"{{\" {} {} \", \" {} number \", \" {} number \", \" {} expect \", \" {} {} "
        "\"}}\"",
        quoted("op"), op, quoted("first"), quoted("last"), quoted("expect"), quoted("text"), text);
  };
  std::vector<std::string> with_text;
  for (const std::string_view op : kEditNames)
    if (op != "delete") with_text.push_back(literal(fmt::format("\"{}\"", op)));
  std::string out;
  out += rule("root", fmt::format("\"{{\" {} string \", \" {} \"[\" edit (\", \" edit)* \"]}}\"",
                                  quoted("why"), quoted("edits")));
  out += rule("edit", edit("op-with-text", "text") + " | " + edit(literal("\"delete\""), "\"[]\""));
  out += rule("op-with-text", fmt::format("{}", fmt::join(with_text, " | ")));
  out += rule("number", "[1-9] [0-9]{0,4}");
  out += rule("expect", "\"\\\"\" statement \"\\\"\"");
  out += rule("text", "\"[\" json-line (\", \" json-line)* \"]\"");
  out += rule("json-line", "\"\\\"\" line \"\\\"\"");
  out += rule("string", "\"\\\"\" char{0,400} \"\\\"\"");
  out += rule("char", "[^\"\\\\\\x00-\\x1F\\x7F] | \"\\\\\" ([\"\\\\/bfnrt])");
  out += rule("line", "\"    \"{0,12} statement");
  return out;
}

}  // namespace

std::string gbnf() {
  return answer_rules() + statement_rules() + hole_rules() + expression_rules();
}

}  // namespace kw::propose
