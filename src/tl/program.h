// A TL program: a tree of statements, each an op of ops.def with its holes filled.
//
// The tree is generic on purpose: readers, printers, diff and edits are driven by the table and
// never enumerate statements. What a statement means is said by laws_*.cpp (one program), by
// exec/ (running it) and by docs/tl/text, each with one function or section a word.
//
//   const Stmt& s = ...;                       // tma_load q[c.b, c.h, i] -> q_s[r][u], arrive
//   ... s.op == Op::tma_load;  s.expr("r");  s.word("hint"); for (const Item& d : s.items("d"))
//   ...     // a hole that holds several
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"
#include "tl/syntax/expr.h"

namespace kw::tl {

enum class Op {
#define OP(word, level, where, holds, ...) word,
#include "tl/ops.def"
};
std::string_view word(Op op);  // "tma_load"; "if" for Op::if_, whose name C++ has taken
inline constexpr int kOps = 0
#define OP(word, level, where, holds, ...) +1
#include "tl/ops.def"
    ;

// One entry of a hole. What a kind of hole (ops.def) leaves in it:
//   word string new news dims type record result fn step   name ("bf16", "kw/kw.cuh", "M")
//   inits lets rows values                          name, and expr where there is a value
//   tiles                                           name, and expr where there are several
//   params                                          name and type ("i32", "index", a record)
//   access                                          name "in" or "out", and type
//   all others                                      expr (num: an integer)
struct Item {
  std::string name, type;
  ExprPtr expr;
  Span span;
};

struct Field {
  std::string hole;  // its name in ops.def
  std::vector<Item> items;
};

struct Stmt {
  Op op;
  std::vector<Field> fields;  // in the order of the TL spelling's first mention
  std::vector<Stmt> body;     // empty unless the op holds a block
  Span span;                  // the text it was read from: its own words, without its block

  const std::vector<Item>& items(std::string_view hole) const;
  std::vector<Item>& items(std::string_view hole);
  // Of a hole with one entry.
  const ExprPtr& expr(std::string_view hole) const;
  const std::string& word(std::string_view hole) const;
  bool has(std::string_view hole) const;
};

// A module: kernels, functions and declarations in the order of the text.
struct Program {
  std::vector<Stmt> body;
  SourcePtr source;

  // The first statement of this op anywhere in the module (depth first), or null.
  const Stmt* find(Op op) const;
  const Stmt* kernel() const;  // of either kind, or null
  Stmt* find(Op op);
};

// Calls f on every statement, parents first.
void walk(const std::vector<Stmt>& body, const std::function<void(const Stmt&)>& f);
void walk(std::vector<Stmt>& body, const std::function<void(Stmt&)>& f);

// Reads TL text. Reports every statement that cannot be read, with line and column, and returns
// nothing if there was any.
std::optional<Program> parse(const SourcePtr& source, Diagnostics& diagnostics);
// Reads one statement, with its block if it holds one; rules and tests build statements from their
// TL spelling. Reading is a matter of form alone: what names stand for is checked by the laws.
std::optional<Stmt> parse_statement(const std::string& text, Diagnostics& diagnostics);
// Reads one expression; null if it cannot.
ExprPtr parse_expr(const std::string& text, Diagnostics& diagnostics);

// Canonical text: four spaces a level, one statement a line. parse(print(p)) == p.
std::string print(const Program& program);
std::string print(const Stmt& statement, int depth = 0);
std::string print_head(const Stmt& statement);  // without its block

bool equal(const Stmt& a, const Stmt& b);        // spans do not count
bool equal_heads(const Stmt& a, const Stmt& b);  // without their blocks
bool equal(const Program& a, const Program& b);

}  // namespace kw::tl
