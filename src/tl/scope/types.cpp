// The type of an expression. Operands that disagree make `unknown`: a law says so, not this.
#include "tl/scope/functions.h"
#include "tl/scope/scope.h"
#include "tl/syntax/precedence.h"

namespace kw::tl {
namespace {

Type join(const Type& a, const Type& b) { return a == b ? a : Type{}; }

Type type_of_index(const Expr& e, const Scope& scope) {
  if (e.args[0]->kind != ExprKind::name) return type_of(e.args[0], scope);  // q_s[r][u]
  const Symbol* s = scope.find(e.args[0]->text);
  if (!s) return {};
  switch (s->category) {
    case Category::row:
    case Category::column:
    case Category::diagonal:
    case Category::operand:
    case Category::line:
      return scalar_type(s->element);
    case Category::accumulator:
    case Category::lane_sum:
      return {Type::real, ""};
    case Category::tensor:
    case Category::tiled:
    case Category::scratch:
    case Category::tile:
    case Category::ring:
      return s->type;
    default:
      return {};
  }
}

Type type_of_call(const Expr& e, const Scope& scope) {
  const Function* f = find_function(e.text);
  if (!f) {
    const Symbol* s = scope.find(e.text);
    return s && s->category == Category::def ? s->type : Type{};
  }
  switch (f->returns) {
    case Returns::integer:
    case Returns::range:
      return {Type::integer, ""};
    case Returns::real:
      return {Type::real, ""};
    case Returns::row:
      return {Type::row, ""};
    case Returns::like_arguments:
      break;
  }
  if (e.args.empty()) return {};
  Type type = type_of(e.args[0], scope);
  for (const ExprPtr& a : e.args) type = join(type, type_of(a, scope));
  return type;
}

Type of_name(const Expr& e, const Scope& scope) {
  if (find_constant(e.text)) return {Type::real, ""};
  if (e.text == "true" || e.text == "false") return {Type::boolean, ""};
  const Symbol* s = scope.find(e.text);
  return s ? s->type : Type{};
}

}  // namespace

Type type_of(const ExprPtr& e, const Scope& scope) {
  switch (e->kind) {
    case ExprKind::integer:
      return {Type::integer, ""};
    case ExprKind::real:
      return {Type::real, ""};
    case ExprKind::name:
      return of_name(*e, scope);
    case ExprKind::index:
      return type_of_index(*e, scope);
    case ExprKind::field: {
      const Type base = type_of(e->args[0], scope);
      return base.kind == Type::record ? Type{Type::integer, ""} : Type{};
    }
    case ExprKind::call:
      return type_of_call(*e, scope);
    case ExprKind::unary:
      return e->text == "not" ? Type{Type::boolean, ""} : type_of(e->args[0], scope);
    case ExprKind::where:
      return join(type_of(e->args[1], scope), type_of(e->args[2], scope));
    case ExprKind::binary:
      if (precedence(e->text) <= kComparison) return {Type::boolean, ""};
      if (e->text == "/") return {Type::real, ""};
      return join(type_of(e->args[0], scope), type_of(e->args[1], scope));
  }
  return {};
}

}  // namespace kw::tl
