// Index expressions: what one element of a tensor is, as a scalar function of its indices.
//
// The graph that PyTorch traced is collapsed into these: views, broadcasts, arange, comparisons,
// where and gathers disappear, and `mask[b, h, i, j]` becomes `(j <= i) or (j < prefix[b])`. Trees
// are immutable and shared. Integers are mathematical (`//` and `%` floor, as in Python), and their
// bits are those of the two's complement in 64 bits; floats are fp64 when evaluated.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/source.h"

namespace kw::spec {

enum class Type { boolean, integer, real };

enum class Kind {
  number,    // value (real) or integer, by type
  infinity,  // +inf; negate for -inf
  index,     // name: one of the form's indices, "b" "h" "i" "j" "d"
  size,      // name: a symbolic size, "B" "M" "N" ...
  score,     // name: a raw product q[i] . k[j] by number, "s" "s2" ...; only inside Form::score
  output,    // the normalised row element; only inside Form::epilogue
  total,     // name: the number of a sum over an operand's row; only inside RowMap
  argument,  // name: a scalar argument of the user's function
  read,      // name: a tensor argument; args: its indices
  binary,    // name: + - * / // % ** min max == != < <= > >= and or << >> & | ^
  unary,     // name: - not exp exp2 log log2 sqrt rsqrt tanh sigmoid relu abs floor float int ...
  where,     // args: condition, then, else
};

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct Expr {
  Kind kind;
  Type type;
  std::string name;
  double value = 0;
  int64_t integer = 0;
  std::vector<ExprPtr> args;
  Span span;  // the user's line, where one is known
};

// ---- building. Constants fold, and the identities x+0, x*1, where(true, a, b), not not x, x and
// true are applied, so that equal masks written differently mostly become equal trees.
ExprPtr integer(int64_t value);
ExprPtr real(double value);
ExprPtr boolean(bool value);
ExprPtr leaf(Kind kind, Type type, std::string name);
ExprPtr read(std::string tensor, Type type, std::vector<ExprPtr> indices);
ExprPtr unary(const std::string& op, ExprPtr a);
ExprPtr binary(const std::string& op, ExprPtr a, ExprPtr b);
ExprPtr where(ExprPtr condition, ExprPtr a, ExprPtr b);

// e, with the user's line where it has none yet. Building and folding know no lines: who reads the
// user's operators gives them, and rewrite() keeps them.
ExprPtr placed(ExprPtr e, const Span& span);

// Where e stands in the user's text: its own place, or the first that one of its parts has.
Span place_of(const ExprPtr& e);

bool equal(const ExprPtr& a, const ExprPtr& b);
inline bool is_number(const ExprPtr& e) { return e->kind == Kind::number; }
inline bool is_number(const ExprPtr& e, int64_t value) {
  return is_number(e) && e->integer == value;
}
inline double number_value(const ExprPtr& number) {
  return number->type == Type::integer ? double(number->integer) : number->value;
}
inline bool is_binary(const ExprPtr& e, const char* op) {
  return e->kind == Kind::binary && e->name == op;
}
// `==`, `!=`, `<` or `<=`: the two others are these with their sides exchanged.
bool is_comparison(const ExprPtr& e);
bool mentions(const ExprPtr& e, Kind kind, const std::string& name = {});
// Whether it is made of numbers and of the column d of a row alone: of those a case has each.
bool is_of_columns(const ExprPtr& e);

// Rebuilds e bottom-up: `change` returns the replacement of a node whose children are already
// rebuilt, or null to keep it.
ExprPtr rewrite(const ExprPtr& e, const std::function<ExprPtr(const ExprPtr&)>& change);

// The n-th product of a score, from 0, as a leaf; and which one a leaf of Kind::score is.
ExprPtr score_leaf(size_t n);
size_t score_number(const Expr& leaf);

// As a person would write it in Python: `j <= i or j < prefix[b]`, fewest parentheses.
std::string print(const ExprPtr& e);

// ---- evaluating, in fp64 and int64
struct Scope {
  std::map<std::string, int64_t> indices;  // i, j, ... and sizes
  std::map<std::string, double> scalars;   // scalar arguments
  // A tensor argument's element; out-of-range indices are the callee's to refuse.
  std::function<double(const std::string&, const std::vector<int64_t>&)> read;
  std::array<double, 4> scores = {};  // what Kind::score stands for, by number
  double output = 0;                  // and Kind::output
  std::vector<double> totals;         // and Kind::total, by number
};
// Booleans are 0 and 1; integers are exact up to 2^53.
double evaluate(const ExprPtr& e, const Scope& scope);

}  // namespace kw::spec
