// Scalar expressions of TL: one immutable tree, two spellings (TL text and CUDA text).
//
// Operators inside the tree are TL's: `//` and `%` floor, `/` divides reals, `and or not where`.
// In a map body an element of a tile or vector is an index node: s[i, j], m[i].
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/source.h"

namespace kw::tl {

enum class ExprKind {
  integer,  // text: decimal digits
  real,     // text: digits with a point, as written
  name,     // text; also the constants -inf, ln2, log2e, true, false
  index,    // args[0] indexed by args[1...]: k_s[t + 1], q_s[me][u] (nested), prefix[b], s[i, j]
  field,    // args[0].text
  call,     // text(args): ceil_div, min, exp2, f32, total, or a def of the module
  binary,   // text: or and == != < <= > >= & | ^ << >> + - * / // %
  unary,    // text: - not
  where,    // where(condition, then, otherwise)
};

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct Expr {
  ExprKind kind;
  std::string text;
  std::vector<ExprPtr> args;
  Span span;  // the TL or CUDA text it was read from; unknown for built nodes

  bool is_name(std::string_view name) const { return kind == ExprKind::name && text == name; }
};

// ---- building
ExprPtr integer(int64_t value);
ExprPtr real(double value);  // shortest text that reads back as this float, with a point
ExprPtr name(std::string text);
ExprPtr index(ExprPtr base, std::vector<ExprPtr> at);
ExprPtr field(ExprPtr base, std::string name);
ExprPtr call(std::string fn, std::vector<ExprPtr> args);
ExprPtr binary(std::string op, ExprPtr a, ExprPtr b);
ExprPtr unary(std::string op, ExprPtr a);
ExprPtr where(ExprPtr condition, ExprPtr a, ExprPtr b);

// Same tree; spans do not count.
bool equal(const ExprPtr& a, const ExprPtr& b);
bool mentions(const ExprPtr& e, std::string_view name);
// k_s of k_s[t + 1], the name under all indices; "" for what has none.
std::string base_name(const ExprPtr& e);
// From the inside out: a part becomes what `change` says of it, and stays where that is null.
ExprPtr rewrite(const ExprPtr& e, const std::function<ExprPtr(const ExprPtr&)>& change);
// From the outside in: what equals a part becomes its value. A part may stand within another.
struct Replacement {
  ExprPtr part, value;
};
ExprPtr replace(const ExprPtr& e, const std::vector<Replacement>& all);

// TL text with the fewest parentheses.
std::string print(const ExprPtr& e);

// How tightly an operator binds, from 1 (loosest); shared by both spellings' readers and printers.
int precedence(std::string_view op);
bool is_comparison(const Expr& e);

}  // namespace kw::tl
