// A TL program: a tree of statements, each an op of ops.def with its holes filled.
//
// The tree is generic on purpose: readers, printers, diff and edits are driven by the table and
// never enumerate statements. What a statement means is said by laws_*.cpp (one program), by
// exec/ (running it) and by docs/tl/text, each with one function or section a word.
//
//   const Stmt& s = ...;                       // tma_load q[c.b, c.h, i] -> q_s[r][u], arrive
//   ... s.op == Op::tma_load;  s.row();  s.hint();
//   for (const Item& d : s.names()) ...        // a hole that holds several
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

// What statements hold, by name: holes.def.
enum class Hole {
#define HOLE(word, what, meaning) word,
#include "tl/holes.def"
};
std::string_view word(Hole hole);  // "src"
std::optional<Hole> hole_named(std::string_view word);

struct Field {
  Hole hole;
  std::vector<Item> items;
};

struct Stmt {
  Op op;
  std::vector<Field> fields;  // in the order of the TL spelling's first mention
  std::vector<Stmt> body;     // empty unless the op holds a block
  Span span;                  // the text it was read from: its own words, without its block

  // What stands in a hole, by its name: s.src(), s.rows(), s.names(). To ask for a hole that the
  // statement has not is our own mistake; whoever has one of several statements asks has().
#define KW_expr(WORD)                                      \
  const ExprPtr& WORD() const { return expr(Hole::WORD); } \
  ExprPtr& WORD() { return items(Hole::WORD).front().expr; }
#define KW_word(WORD)                                          \
  const std::string& WORD() const { return word(Hole::WORD); } \
  std::string& WORD() { return items(Hole::WORD).front().name; }
#define KW_items(WORD)                                                \
  const std::vector<Item>& WORD() const { return items(Hole::WORD); } \
  std::vector<Item>& WORD() { return items(Hole::WORD); }
#define HOLE(word, what, meaning) KW_##what(word)
#include "tl/holes.def"
#undef KW_expr
#undef KW_word
#undef KW_items
  bool has(Hole hole) const;

  // For what goes over all holes alike.
  const std::vector<Item>& items(Hole hole) const;
  std::vector<Item>& items(Hole hole);
  const ExprPtr& expr(Hole hole) const { return items(hole).front().expr; }
  const std::string& word(Hole hole) const { return items(hole).front().name; }
};

// A module: kernels, functions and declarations in the order of the text.
struct Program {
  std::vector<Stmt> body;
  SourcePtr source;

  // The first statement of this op anywhere in the module (depth first), or null.
  const Stmt* find(Op op) const;
  const Stmt* kernel() const;  // of either kind, or null
  Stmt* find(Op op);
  Stmt* kernel();
};

// Calls f on every statement, parents first.
void walk(const std::vector<Stmt>& body, const std::function<void(const Stmt&)>& f);
void walk(std::vector<Stmt>& body, const std::function<void(Stmt&)>& f);

// Calls f on every expression that a statement holds, without its block.
void each_expression(Stmt& s, const std::function<void(ExprPtr&)>& f);
void each_expression(const Stmt& s, const std::function<void(const ExprPtr&)>& f);

// Whether CTAs take turns: what they add to the same sums comes in one order.
bool takes_turns(const Program& program);

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
