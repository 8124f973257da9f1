#include "check/equalities.h"

#include <fmt/format.h>

#include "operator/family.h"
#include "tl/scope/scope.h"

namespace kw::check {
namespace {

bool is_equality(const std::string& op) { return op == "==" || op == "!="; }

bool form_has_one(const spec::Form& form) {
  bool found = false;
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    spec::rewrite(e, [&](const spec::ExprPtr& part) {
      if (part->kind == spec::Kind::binary && is_equality(part->name))
        for (const spec::ExprPtr& side : part->args) found |= side->type == spec::Type::real;
      return spec::ExprPtr();
    });
  });
  return found;
}

bool is_infinity(const tl::ExprPtr& e) {
  return e->is_name("-inf") ||
         (e->kind == tl::ExprKind::unary && e->text == "-" && is_infinity(e->args[0]));
}

bool is_zero(const tl::ExprPtr& e) {
  return (e->kind == tl::ExprKind::real || e->kind == tl::ExprKind::integer) &&
         std::stod(e->text) == 0;
}

// The value of a row of scores, as `total` and online_max leave it.
bool is_of_row(const tl::ExprPtr& e, const tl::Scope& scope) {
  if (e->kind != tl::ExprKind::index) return false;
  const tl::Symbol* s = scope.find(tl::base_name(e));
  return s && s->category == tl::Category::row && s->element == "real";
}

}  // namespace

bool equalities_are_seen(const tl::Program& program, const spec::Form& form,
                         Diagnostics& diagnostics) {
  if (form_has_one(form)) return true;
  bool seen = true;
  tl::walk_scoped(program, [&](const tl::Stmt& s, const tl::Scope& outer) {
    tl::each_expr(s, outer, [&](const tl::ExprPtr& whole, const tl::Scope& scope) {
      tl::rewrite(whole, [&](const tl::ExprPtr& e) {
        if (e->kind != tl::ExprKind::binary || !is_equality(e->text)) return tl::ExprPtr();
        const tl::ExprPtr &a = e->args[0], &b = e->args[1];
        const bool reals = tl::type_of(a, scope).kind == tl::Type::real ||
                           tl::type_of(b, scope).kind == tl::Type::real;
        const bool known = is_infinity(a) || is_infinity(b) ||
                           (is_of_row(a, scope) && is_zero(b)) ||
                           (is_of_row(b, scope) && is_zero(a));
        if (!reals || known) return tl::ExprPtr();
        seen = false;
        diagnostics
            .error("check.equality", e->span.known() ? e->span : s.span,
                   fmt::format("`{}` asks whether two reals are equal, and the specification asks "
                               "for no such thing",
                               tl::print(e)))
            .hint =
            "no random input makes it true, so that no case shows what it does: leave it out";
        return tl::ExprPtr();
      });
    });
  });
  return seen;
}

}  // namespace kw::check
