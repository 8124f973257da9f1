// Operands in pages: how keys and values are read where a table says in which page a sequence's
// rows lie, as caches of servers have them.
#include "operator/form.h"

namespace kw::spec {
namespace {

bool is_index(const ExprPtr& e, std::string_view name) {
  return e->kind == Kind::index && e->name == name;
}

// `j // c` or `j % c`: c, or 0.
int64_t of_row(const ExprPtr& e, std::string_view op) {
  const bool is = e->kind == Kind::binary && e->name == op && is_index(e->args[0], "j") &&
                  e->args[1]->kind == Kind::number;
  return is ? e->args[1]->integer : 0;
}

}  // namespace

std::optional<Pages> pages_of(const Operand& operand) {
  Pages out{operand.indices.size(), operand.indices.size(), "", 0};
  for (size_t n = 0; n < operand.indices.size(); ++n) {
    const ExprPtr& e = operand.indices[n];
    if (e->kind == Kind::read && e->args.size() == 2 && is_index(e->args[0], "b") &&
        of_row(e->args[1], "//") > 0) {
      out.page = n;
      out.table = e->name;
      out.rows = of_row(e->args[1], "//");
    } else if (of_row(e, "%") > 0) {
      out.row = n;
    }
  }
  const bool both = out.page < operand.indices.size() && out.row < operand.indices.size();
  if (!both || of_row(operand.indices[out.row], "%") != out.rows) return std::nullopt;
  return out;
}

std::optional<RowMap> rows_as_read(const Operand& operand) {
  if (operand.row || !pages_of(operand)) return operand.row;
  std::vector<ExprPtr> at;
  for (const ExprPtr& e : operand.indices)  // in a row map h is the operand's own head
    at.push_back(mentions(e, Kind::index, "h") ? leaf(Kind::index, Type::integer, "h") : e);
  return RowMap{{}, read(operand.argument, Type::real, std::move(at))};
}

bool is_paged(const Form& form) {
  return !form.terms.empty() && pages_of(form.terms[0].k).has_value();
}

}  // namespace kw::spec
