// What the score, the mask, the sink and the epilogue read becomes arguments of the kernel
// (transfer/editing/arguments.h).
//
// When     the score or the mask reads it, at any indices. What they read at the batch and the head
//          alone becomes one `let` for each block of the output; other reads stay where they are.
// Effect   none: elements are read as they are. Types that the vocabulary cannot read are refused.
#include "transfer/editing/arguments.h"

#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

// An operand's own elements, in its row map, until they have the kernel's name.
constexpr const char* kOwn = "%own";

Letters letters_of(const Facts& f) { return {f.batch, f.heads, f.groups, f.queries, f.keys}; }

// What an operand's rows become, with its own elements as the kernel's argument has them: [b, h,
// row, column], whatever the user's order.
bool change_row(Arguments& arguments, const spec::Operand& operand, const std::string& argument,
                const char* row, std::optional<spec::RowMap>& out) {
  if (!operand.row) return true;
  size_t column = 0;
  while (!(operand.indices[column]->kind == Kind::index && operand.indices[column]->name == "d"))
    ++column;
  const auto own = [&](const ExprPtr& e) {
    return spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      if (x->kind != Kind::read || x->name != operand.argument) return nullptr;
      const auto index = [](const char* name) {
        return spec::leaf(Kind::index, spec::Type::integer, name);
      };
      return spec::read(kOwn, x->type, {index("b"), index("h"), index(row), x->args[column]});
    });
  };
  const auto named = [&](const ExprPtr& e) {
    return spec::rewrite(arguments.renamed(e), [&](const ExprPtr& x) -> ExprPtr {
      const bool is_own = x->kind == Kind::read && x->name == kOwn;
      return is_own ? spec::read(argument, x->type, x->args) : nullptr;
    });
  };
  std::vector<ExprPtr> all = operand.row->sums;
  all.push_back(operand.row->element);
  for (ExprPtr& e : all) {
    e = own(e);
    if (!arguments.add(e, kOwn)) return false;
  }
  for (ExprPtr& e : all) e = named(e);
  out = spec::RowMap{{all.begin(), all.end() - 1}, all.back()};
  return true;
}

}  // namespace

bool rule_arguments(Edit& edit) {
  const Facts& f = edit.facts;
  Arguments arguments(edit, letters_of(f), f.dim, f.scale);
  const ExprPtr &score = edit.term.score, &keep = edit.term.keep;
  for (const ExprPtr& e : {score, keep, edit.term.sink, edit.form.epilogue})
    if (!arguments.add(e)) return false;
  if (!change_row(arguments, edit.term.q, f.q, "i", edit.q_row) ||
      !change_row(arguments, edit.term.k, f.k, "j", edit.k_row) ||
      !change_row(arguments, edit.term.v, f.v, "j", edit.v_row))
    return false;
  const auto renamed = [&](const ExprPtr& e) { return e ? arguments.renamed(e) : nullptr; };
  edit.score = renamed(score);
  edit.keep = renamed(keep);
  edit.sink = renamed(edit.term.sink);
  edit.epilogue = renamed(edit.form.epilogue);
  return true;
}

}  // namespace kw::transfer
