// Trees as a person would write them in Python, with the fewest parentheses.
#include <fmt/format.h>

#include <cmath>

#include "operator/expr/expr.h"

namespace kw::spec {
namespace {

enum Level { kOr = 1, kAnd, kNot, kCompare, kBits, kSum, kProduct, kMinus, kPower, kAtom };

int level(const Expr& e) {
  if (e.kind == Kind::number) return e.value < 0 ? kMinus : kAtom;
  if (e.kind == Kind::unary) return e.name == "not" ? kNot : e.name == "-" ? kMinus : kAtom;
  if (e.kind != Kind::binary) return kAtom;
  if (e.name == "or") return kOr;
  if (e.name == "and") return kAnd;
  if (e.name == "&" || e.name == "|" || e.name == "^" || e.name == "<<" || e.name == ">>")
    return kBits;
  if (e.name == "+" || e.name == "-") return kSum;
  if (e.name == "*" || e.name == "/" || e.name == "//" || e.name == "%") return kProduct;
  if (e.name == "**") return kPower;
  if (e.name == "min" || e.name == "max") return kAtom;
  return kCompare;
}

std::string inside(const ExprPtr& e, int least);

std::string list(const std::vector<ExprPtr>& args) {
  std::string out;
  for (const ExprPtr& a : args) out += (out.empty() ? "" : ", ") + print(a);
  return out;
}

std::string spelled_number(const Expr& e) {
  if (e.type == Type::boolean) return e.integer ? "True" : "False";
  if (e.type == Type::integer) return fmt::format("{}", e.integer);
  return fmt::format("{:.6g}", e.value);
}

std::string text(const Expr& e) {
  switch (e.kind) {
    case Kind::number:
      return spelled_number(e);
    case Kind::infinity:
      return "inf";
    case Kind::score:
      return e.name;
    case Kind::output:
      return "o";
    case Kind::total:
      return "sum" + e.name;
    case Kind::index:
    case Kind::size:
    case Kind::argument:
      return e.name;
    case Kind::read:
      return e.args.empty() ? e.name : e.name + "[" + list(e.args) + "]";
    case Kind::where:
      return "where(" + list(e.args) + ")";
    case Kind::unary:
      if (e.name == "float") return print(e.args[0]);  // a person does not write it
      if (e.name == "not") return "not " + inside(e.args[0], kNot);
      if (e.name == "-") return "-" + inside(e.args[0], kMinus);
      return e.name + "(" + print(e.args[0]) + ")";
    case Kind::binary: {
      if (e.name == "min" || e.name == "max") return e.name + "(" + list(e.args) + ")";
      const int own = level(e);
      // Nobody remembers how tightly these bind: beside another operator they have parentheses.
      if (own == kBits)
        return inside(e.args[0], kMinus) + " " + e.name + " " + inside(e.args[1], kMinus);
      // Left associative; the right operand of - / // % needs parentheses at its own level.
      const bool loose = e.name == "+" || e.name == "*" || e.name == "and" || e.name == "or";
      return inside(e.args[0], own == kPower || own == kCompare ? own + 1 : own) + " " + e.name +
             " " + inside(e.args[1], loose && e.args[1]->name == e.name ? own : own + 1);
    }
  }
  return "?";
}

std::string inside(const ExprPtr& e, int least) {
  const Expr* shown = e.get();
  while (shown->kind == Kind::unary && shown->name == "float") shown = shown->args[0].get();
  return level(*shown) < least ? "(" + text(*shown) + ")" : text(*shown);
}

}  // namespace

std::string print(const ExprPtr& e) { return e ? text(*e) : "True"; }

}  // namespace kw::spec
