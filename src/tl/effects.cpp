#include "tl/effects.h"

#include <algorithm>

namespace kw::tl {
namespace {

// The names in an expression, but for those of functions.
void names_in(const ExprPtr& e, std::vector<std::string>& names) {
  if (e->kind == ExprKind::name) names.push_back(e->text);
  for (const ExprPtr& part : e->args) names_in(part, names);
}

// The holes that a statement writes. All others it reads.
std::vector<std::string_view> written_holes(Op op) {
  switch (op) {
    case Op::copy:
    case Op::store:
    case Op::load:
      return {"d"};
    case Op::gemm:
    case Op::gemm_add:
    case Op::gemm_add_transposed:
      return {"c"};
    case Op::raise:
      return {"f", "m", "r"};
    case Op::reshape:
      return {"p"};
    case Op::row_max:
      return {"m"};
    case Op::row_sum:
      return {"l"};
    case Op::store_rows:
      return {"m"};
    case Op::fill:
    case Op::map:
    case Op::map_at:
    case Op::map_real:
    case Op::map_rows:
    case Op::compute:
      return {"t"};
    default:
      return {};
  }
}

// What is read although it is written: the sum that is added to, the reference that may stay.
bool keeps(Op op, std::string_view hole) {
  return op == Op::gemm_add || op == Op::gemm_add_transposed || op == Op::row_max ||
         op == Op::row_sum || (op == Op::raise && hole == "m");
}

// A name without a value is being declared, or a word of the statement's.
void add(std::vector<std::string>& to, const Item& item) {
  if (item.expr) names_in(item.expr, to);
}

}  // namespace

Effects effects_of(const Stmt& stmt) {
  Effects all;
  const std::vector<std::string_view> written = written_holes(stmt.op);
  for (const Field& f : stmt.fields)
    for (const Item& item : f.items) {
      const bool target = std::find(written.begin(), written.end(), f.hole) != written.end();
      if (!target || keeps(stmt.op, f.hole)) add(all.reads, item);
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
