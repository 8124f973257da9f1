#include "tl/analysis/effects.h"

#include <algorithm>

#include "tl/traits.h"

namespace kw::tl {
namespace {

// The names in an expression, but for those of functions.
void names_in(const ExprPtr& e, std::vector<std::string>& names) {
  if (e->kind == ExprKind::name) names.push_back(e->text);
  for (const ExprPtr& part : e->args) names_in(part, names);
}

// In a plan a map makes its target: it reads it where its body names it.
bool makes_target(Op op) { return is(op, Family::map); }

// A name without a value is being declared, or a word of the statement's.
void add(std::vector<std::string>& to, const Item& item) {
  if (item.expr) names_in(item.expr, to);
}

}  // namespace

Effects effects_of(const Stmt& stmt) {
  Effects all;
  for (const Field& f : stmt.fields)
    for (const Item& item : f.items) {
      const Access a = access(stmt.op, f.hole);
      const bool target = tl::writes(a);
      if (tl::reads(a) && !(target && makes_target(stmt.op))) add(all.reads, item);
      if (target) all.writes.push_back(item.expr ? base_name(item.expr) : item.name);
      if (target && item.expr && item.expr->kind == ExprKind::index)
        for (size_t n = 1; n < item.expr->args.size(); ++n) names_in(item.expr->args[n], all.reads);
    }
  return all;
}

namespace {
bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
}  // namespace

bool reads(const Stmt& stmt, std::string_view name) { return has(effects_of(stmt).reads, name); }
bool writes(const Stmt& stmt, std::string_view name) { return has(effects_of(stmt).writes, name); }

}  // namespace kw::tl
