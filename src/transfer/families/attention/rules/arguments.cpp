// What the score, the mask, the sink and the epilogue read becomes arguments of the kernel
// (transfer/editing/arguments.h).
//
// When     the score or the mask reads it, at any indices. What they read at the batch and the head
//          alone becomes one `let` for each block of the output; other reads stay where they are.
// Effect   none: elements are read as they are. Types that the vocabulary cannot read are refused.
#include "transfer/editing/arguments.h"

#include "transfer/editing/rows.h"
#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;

Letters letters_of(const Facts& f) { return {f.batch, f.heads, f.groups, f.queries, f.keys}; }

// What an operand's rows become.
bool change_row(Arguments& arguments, const spec::Operand& operand, const std::string& argument,
                const char* row, std::optional<spec::RowMap>& out) {
  if (operand.row) out = named_rows(arguments, *operand.row, operand, argument, row);
  return !operand.row || out;
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
  if (const std::optional<spec::Pages> pages = spec::pages_of(edit.term.k)) {
    const ExprPtr& entry = edit.term.k.indices[pages->page];
    if (!arguments.add(entry)) return false;
    edit.table = arguments.renamed(entry)->name;
    edit.entries = arguments.renamed(spec::leaf(Kind::size, spec::Type::integer, edit.form.N.name));
  }
  const auto renamed = [&](const ExprPtr& e) { return e ? arguments.renamed(e) : nullptr; };
  edit.score = renamed(score);
  edit.keep = renamed(keep);
  edit.sink = renamed(edit.term.sink);
  edit.epilogue = renamed(edit.form.epilogue);
  return true;
}

}  // namespace kw::transfer
