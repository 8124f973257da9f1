#include "proofs/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "proofs/solver/sexpr.h"
#include "tl/traits.h"

namespace kw::proofs {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Family;
using tl::Op;
using tl::Stmt;

class Body {
 public:
  Body(Scope scope, const std::function<Term(const ExprPtr&, const Scope&)>& eval)
      : scope_(std::move(scope)), eval_(eval) {}

  std::optional<Formula> run(const std::vector<Stmt>& body) {
    for (const Stmt& s : body)
      if (!statement(s) || elsewhere_) return std::nullopt;
    for (const auto& [tile, text] : tiles_) formula_.text += fmt::format("({} {})", tile, text);
    return std::move(formula_);
  }

 private:
  bool statement(const Stmt& s) {
    const Family family = tl::traits(s.op).family;
    if (family == Family::registers) return true;
    if (s.op == Op::let) {
      for (const tl::Item& d : s.names()) set(d.name, d.expr);
      return true;
    }
    if (family != Family::map && family != Family::gather) return false;
    const std::string target = tl::base_name(s.target());
    set(target, s.value());
    if (family == Family::map) tiles_[target] = reals_[target];
    return true;
  }

  void set(const std::string& name, const ExprPtr& value) {
    const Term t = eval_(value, scope_);
    if (t.sort == Term::integer || t.sort == Term::boolean)
      scope_.names[name] = {t, {}};
    else
      reals_[name] = real(value);
  }

  // As text that is read as a tree: (+ s (* unscale (table #0 #1))).
  std::string real(const ExprPtr& e) {
    const std::string base = e->kind == ExprKind::index ? tl::base_name(e) : e->text;
    const bool named = e->kind == ExprKind::name || e->kind == ExprKind::index;
    if (const auto known = reals_.find(base); named && known != reals_.end()) {
      elsewhere_ |= !is_here(*e);
      return known->second;
    }
    const Term t = eval_(e, scope_);
    if (t.sort == Term::integer || t.sort == Term::boolean) return whole_number(t);
    if (e->args.empty()) return e->text;
    std::vector<std::string> parts;
    for (size_t n = e->kind == ExprKind::index ? 1 : 0; n < e->args.size(); ++n)
      parts.push_back(real(e->args[n]));
    const std::string head = e->kind == ExprKind::index   ? base
                             : e->kind == ExprKind::where ? "where"
                                                          : e->text;
    return fmt::format("({} {})", head, fmt::join(parts, " "));
  }

  // A vector's or tile's element at i, j or j - i: what it was made of there is known.
  bool is_here(const tl::Expr& e) const {
    return e.kind == ExprKind::name ||
           std::all_of(e.args.begin() + 1, e.args.end(), [&](const ExprPtr& at) {
             const std::string text = eval_(at, scope_).text;
             return text == "i" || text == "j" || text == "(- j i)";
           });
  }

  std::string whole_number(const Term& t) {
    const auto known = std::find_if(formula_.integers.begin(), formula_.integers.end(),
                                    [&](const Term& other) { return other.text == t.text; });
    const size_t at = size_t(known - formula_.integers.begin());
    if (known == formula_.integers.end()) formula_.integers.push_back(t);
    return fmt::format("#{}", at);
  }

  Scope scope_;
  const std::function<Term(const ExprPtr&, const Scope&)>& eval_;
  std::map<std::string, std::string> reals_, tiles_;
  Formula formula_;
  bool elsewhere_ = false;
};

// Its text whatever its integers are.
std::string shape(const Sexpr& e) {
  if (e.parts.empty()) return e.atom.starts_with('#') ? "#" : e.atom;
  std::string text;
  for (const Sexpr& p : e.parts) text += (text.empty() ? "(" : " ") + shape(p);
  return text + ")";
}

void operands(const Sexpr& e, const std::string& op, std::vector<Sexpr>& out);

// Sums of sums are one sum, in the order of the operands' shapes; f32(i) is i.
Sexpr in_order(const Sexpr& e) {
  if (e.parts.empty()) return e;
  const std::string& op = e.parts[0].atom;
  if (e.is("f32", 1)) return in_order(e.parts[1]);
  Sexpr out{"", {e.parts[0]}};
  if ((op == "+" || op == "*") && e.parts.size() > 2) {
    std::vector<Sexpr> all;
    operands(e, op, all);
    std::stable_sort(all.begin(), all.end(),
                     [](const Sexpr& a, const Sexpr& b) { return shape(a) < shape(b); });
    out.parts.insert(out.parts.end(), all.begin(), all.end());
  } else {
    for (size_t n = 1; n < e.parts.size(); ++n) out.parts.push_back(in_order(e.parts[n]));
  }
  return out;
}

void operands(const Sexpr& e, const std::string& op, std::vector<Sexpr>& out) {
  for (size_t n = 1; n < e.parts.size(); ++n) {
    const Sexpr& p = e.parts[n];
    if (p.parts.size() > 2 && p.parts[0].atom == op)
      operands(p, op, out);
    else
      out.push_back(in_order(p));
  }
}

// The integers of a formula, from left to right.
void integers_in(const Sexpr& e, const Formula& formula, std::vector<Term>& out) {
  if (e.atom.starts_with('#')) out.push_back(formula.integers[std::stoul(e.atom.substr(1))]);
  for (const Sexpr& p : e.parts) integers_in(p, formula, out);
}

}  // namespace

std::optional<Formula> formula_of(const std::vector<Stmt>& body, Scope scope,
                                  const std::function<Term(const ExprPtr&, const Scope&)>& eval) {
  return Body(std::move(scope), eval).run(body);
}

bool is_same(const Formula& one, const Formula& other,
             const std::function<bool(const Term&, const Term&)>& same_integer) {
  const Sexpr a = in_order(read_term("(tiles " + one.text + ")")),
              b = in_order(read_term("(tiles " + other.text + ")"));
  if (shape(a) != shape(b)) return false;
  std::vector<Term> of_a, of_b;
  integers_in(a, one, of_a);
  integers_in(b, other, of_b);
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), same_integer);
}

}  // namespace kw::proofs
