// Building, comparing and printing expressions.
//
// Two operators deserve a word. Comparisons do not chain in either spelling (Python and C read
// `a < b < c` differently), so an operand of one is at least a sum. `not` binds looser than a
// comparison, as in Python; C's `!` binds tightest, which is the CUDA printer's business.
#include "tl/syntax/expr.h"

#include <fmt/format.h>

#include <cmath>

#include "tl/syntax/precedence.h"

namespace kw::tl {
namespace {

ExprPtr node(ExprKind kind, std::string text, std::vector<ExprPtr> args = {}) {
  return std::make_shared<const Expr>(Expr{kind, std::move(text), std::move(args), {}});
}

std::string print_at(const ExprPtr& e, int low);

std::string print_list(const std::vector<ExprPtr>& list) {
  std::string out;
  for (const ExprPtr& e : list) out += (out.empty() ? "" : ", ") + print_at(e, 0);
  return out;
}

// The text of one node and how tightly it binds.
std::pair<std::string, int> spell(const Expr& e) {
  const auto& a = e.args;
  switch (e.kind) {
    case ExprKind::integer:
    case ExprKind::real:
      return {e.text, kPrimary};
    case ExprKind::name:
      return {e.text, e.text == "-inf" ? kUnary : kPrimary};
    case ExprKind::index:
      return {print_at(a[0], kPrimary) + "[" + print_list({a.begin() + 1, a.end()}) + "]",
              kPrimary};
    case ExprKind::field:
      return {print_at(a[0], kPrimary) + "." + e.text, kPrimary};
    case ExprKind::call:
      return {e.text + "(" + print_list(a) + ")", kPrimary};
    case ExprKind::where:
      return {"where(" + print_list(a) + ")", kPrimary};
    case ExprKind::unary:
      if (e.text == "not") return {"not " + print_at(a[0], kNot), kNot};
      return {"-" + print_at(a[0], kPrimary), kUnary};
    case ExprKind::binary: {
      const int p = precedence(e.text);
      const int left = p == kBits ? kUnary : p == kComparison ? p + 1 : p;
      return {print_at(a[0], left) + " " + e.text + " " + print_at(a[1], p == kBits ? left : p + 1),
              p};
    }
  }
  return {};
}

std::string print_at(const ExprPtr& e, int low) {
  auto [text, p] = spell(*e);
  return p < low ? "(" + text + ")" : text;
}

}  // namespace

ExprPtr integer(int64_t value) {
  if (value < 0) return unary("-", integer(-value));
  return node(ExprKind::integer, std::to_string(value));
}

ExprPtr real(double value) {
  if (std::isinf(static_cast<float>(value)))
    return value < 0 ? name("-inf") : unary("-", name("-inf"));
  if (std::signbit(value)) return unary("-", real(-value));
  std::string text = fmt::format("{}", static_cast<float>(value));
  const size_t e = text.find('e');
  if (text.find('.') == std::string::npos)
    text.insert(e == std::string::npos ? text.size() : e, ".0");
  return node(ExprKind::real, text);
}

ExprPtr name(std::string text) { return node(ExprKind::name, std::move(text)); }

ExprPtr index(ExprPtr base, std::vector<ExprPtr> at) {
  at.insert(at.begin(), std::move(base));
  return node(ExprKind::index, "", std::move(at));
}

ExprPtr field(ExprPtr base, std::string name) {
  return node(ExprKind::field, std::move(name), {std::move(base)});
}

ExprPtr call(std::string fn, std::vector<ExprPtr> args) {
  return node(ExprKind::call, std::move(fn), std::move(args));
}

ExprPtr binary(std::string op, ExprPtr a, ExprPtr b) {
  return node(ExprKind::binary, std::move(op), {std::move(a), std::move(b)});
}

ExprPtr unary(std::string op, ExprPtr a) {
  return node(ExprKind::unary, std::move(op), {std::move(a)});
}

ExprPtr where(ExprPtr condition, ExprPtr a, ExprPtr b) {
  return node(ExprKind::where, "", {std::move(condition), std::move(a), std::move(b)});
}

bool equal(const ExprPtr& a, const ExprPtr& b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->text != b->text || a->args.size() != b->args.size())
    return false;
  for (size_t i = 0; i < a->args.size(); ++i)
    if (!equal(a->args[i], b->args[i])) return false;
  return true;
}

std::string base_name(const ExprPtr& e) {
  const Expr* base = e.get();
  while (base && base->kind == ExprKind::index) base = base->args[0].get();
  return base && base->kind == ExprKind::name ? base->text : "";
}

bool mentions(const ExprPtr& e, std::string_view name) {
  if (!e) return false;
  if (e->is_name(name)) return true;
  for (const ExprPtr& a : e->args)
    if (mentions(a, name)) return true;
  return false;
}

ExprPtr rewrite(const ExprPtr& e, const std::function<ExprPtr(const ExprPtr&)>& change) {
  if (!e) return e;
  ExprPtr out = e;
  std::vector<ExprPtr> args;
  bool changed = false;
  for (const ExprPtr& a : e->args) {
    args.push_back(rewrite(a, change));
    changed |= args.back() != a;
  }
  if (changed) out = std::make_shared<const Expr>(Expr{e->kind, e->text, std::move(args), e->span});
  const ExprPtr replaced = change(out);
  return replaced ? replaced : out;
}

ExprPtr replace(const ExprPtr& e, const std::vector<Replacement>& all) {
  for (const Replacement& r : all)
    if (equal(e, r.part)) return r.value;
  Expr out = *e;
  for (ExprPtr& a : out.args) a = replace(a, all);
  return std::make_shared<const Expr>(std::move(out));
}

std::string print(const ExprPtr& e) { return print_at(e, 0); }
std::string print(const ExprPtr& e, int low) { return print_at(e, low); }

int precedence(std::string_view op) {
  if (op == "or") return kOr;
  if (op == "and") return kAnd;
  if (op == "not") return kNot;
  if (op == "==" || op == "!=" || op == "<" || op == "<=" || op == ">" || op == ">=")
    return kComparison;
  if (op == "&" || op == "|" || op == "^" || op == "<<" || op == ">>") return kBits;
  if (op == "+" || op == "-") return kSum;
  if (op == "*" || op == "/" || op == "//" || op == "%") return kProduct;
  return 0;
}

bool is_comparison(const Expr& e) {
  return e.kind == ExprKind::binary && precedence(e.text) == kComparison;
}

}  // namespace kw::tl
