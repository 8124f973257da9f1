#include "check/equalities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "operator/family.h"
#include "tl/scope/scope.h"

namespace kw::check {
namespace {

bool is_equality(const std::string& op) { return op == "==" || op == "!="; }
bool is_order(const std::string& op) { return op == "<" || op == "<=" || op == ">" || op == ">="; }

// What the form asks reals to be equal to: the numbers that are written there, and whether it asks
// so of two reals, neither of which is one.
struct Asked {
  std::set<double> numbers;
  bool any = false;
};

Asked asked_in(const spec::Form& form, bool (*is_asked)(const std::string& op)) {
  Asked found;
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    spec::rewrite(e, [&](const spec::ExprPtr& part) {
      if (part->kind != spec::Kind::binary || !is_asked(part->name)) return spec::ExprPtr();
      const spec::ExprPtr &a = part->args[0], &b = part->args[1];
      if (a->type != spec::Type::real && b->type != spec::Type::real) return spec::ExprPtr();
      if (spec::is_number(a) || spec::is_number(b))
        found.numbers.insert(spec::number_value(spec::is_number(a) ? a : b));
      else
        found.any = true;
      return spec::ExprPtr();
    });
  });
  return found;
}

bool is_infinity(const tl::ExprPtr& e) {
  return e->is_name("-inf") ||
         (e->kind == tl::ExprKind::unary && e->text == "-" && is_infinity(e->args[0]));
}

// A number, or minus one, as it is written.
std::optional<double> number(const tl::ExprPtr& e) {
  if (e->kind == tl::ExprKind::real || e->kind == tl::ExprKind::integer) return std::stod(e->text);
  if (e->kind != tl::ExprKind::unary || e->text != "-") return std::nullopt;
  const std::optional<double> of = number(e->args[0]);
  return of ? std::optional(-*of) : std::nullopt;
}

bool is_zero(const tl::ExprPtr& e) { return number(e) == 0.0; }

// Of the form's: where that has several, a program may ask it elsewhere, which cases show.
bool is_asked(const tl::ExprPtr& a, const tl::ExprPtr& b, const Asked& asked) {
  const std::optional<double> written = number(a) ? number(a) : number(b);
  if (!written) return asked.any;
  return std::any_of(asked.numbers.begin(), asked.numbers.end(), [&](double x) {
    return std::fabs(x - *written) <= 1e-6 * std::fabs(x);  // as fp32 has it
  });
}

// The value of a row of scores, as `total` and online_max leave it.
bool is_of_row(const tl::ExprPtr& e, const tl::Scope& scope) {
  if (e->kind != tl::ExprKind::index) return false;
  const tl::Symbol* s = scope.find(tl::base_name(e));
  return s && s->category == tl::Category::row && s->element == "real";
}

// Each comparison of reals, but for infinities, that is none of these.
void each_unasked(
    const tl::Program& program, const Asked& asked, bool (*is_of_kind)(const std::string& op),
    const std::function<void(const tl::ExprPtr&, const tl::Stmt&, const tl::Scope&)>& f) {
  tl::walk_scoped(program, [&](const tl::Stmt& s, const tl::Scope& outer) {
    tl::each_expr(s, outer, [&](const tl::ExprPtr& whole, const tl::Scope& scope) {
      tl::rewrite(whole, [&](const tl::ExprPtr& e) {
        if (e->kind != tl::ExprKind::binary || !is_of_kind(e->text)) return tl::ExprPtr();
        const tl::ExprPtr &a = e->args[0], &b = e->args[1];
        const bool reals = tl::type_of(a, scope).kind == tl::Type::real ||
                           tl::type_of(b, scope).kind == tl::Type::real;
        if (reals && !is_infinity(a) && !is_infinity(b) && !is_asked(a, b, asked)) f(e, s, scope);
        return tl::ExprPtr();
      });
    });
  });
}

}  // namespace

bool equalities_are_seen(const tl::Program& program, const spec::Form& form,
                         Diagnostics& diagnostics) {
  bool seen = true;
  each_unasked(program, asked_in(form, is_equality), is_equality,
               [&](const tl::ExprPtr& e, const tl::Stmt& s, const tl::Scope& scope) {
                 const tl::ExprPtr &a = e->args[0], &b = e->args[1];
                 if ((is_of_row(a, scope) && is_zero(b)) || (is_of_row(b, scope) && is_zero(a)))
                   return;
                 seen = false;
                 diagnostics
                     .error("check.equality", e->span.known() ? e->span : s.span,
                            fmt::format("`{}` asks whether two reals are equal, and the "
                                        "specification asks for no such thing",
                                        tl::print(e)))
                     .hint =
                     "no random input makes it true, so that no case shows what it does: leave it "
                     "out";
               });
  return seen;
}

std::string unasked_comparison(const tl::Program& program, const spec::Form& form) {
  std::string first;
  each_unasked(program, asked_in(form, is_order), is_order,
               [&](const tl::ExprPtr& e, const tl::Stmt&, const tl::Scope& scope) {
                 const tl::ExprPtr &a = e->args[0], &b = e->args[1];
                 if (is_zero(a) || is_zero(b) || is_of_row(a, scope) || is_of_row(b, scope)) return;
                 if (first.empty()) first = tl::print(e);
               });
  return first;
}

}  // namespace kw::check
