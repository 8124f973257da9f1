// The specification's integers and truths, as a kernel may use them.
#include <algorithm>
#include <set>

#include "operator/family.h"
#include "proofs/integers.h"
#include "proofs/solver/sexpr.h"

namespace kw::proofs {
namespace {

// An integer, and of an absolute value what it is made of: |j - i| is computed as that of
// f32(j) - f32(i), too, f32(i + 1) as f32(i) + 1 and f32(max(i - j, 0)) as max(f32(i - j), 0). Of
// others the parts are no numbers of the specification's: slope * j and slope * i round at their
// own sizes, and so do the parts of a distance of data, which fp32 may not hold: sizes end at 2^24,
// where it holds indices.
std::vector<spec::ExprPtr> summands(const spec::ExprPtr& e, bool within = false) {
  if (e->type != spec::Type::integer) return {};
  std::vector<spec::ExprPtr> out = {e};
  const bool absolute = e->kind == spec::Kind::unary && e->name == "abs",
             next = (spec::is_binary(e, "+") || spec::is_binary(e, "-") ||
                     spec::is_binary(e, "max") || spec::is_binary(e, "min")) &&
                    (spec::is_number(e->args[0]) || spec::is_number(e->args[1]));
  if (spec::mentions(e, spec::Kind::read) || !(within || absolute || next)) return out;
  for (const spec::ExprPtr& a : e->args)
    for (const spec::ExprPtr& x : summands(a, within || absolute)) out.push_back(x);
  return out;
}

}  // namespace

Specified integers_of(const spec::Form& form, const std::map<std::string, Term>& indices,
                      Vocabulary& vocabulary) {
  // In a kernel, and at a row that a pass writes: of q or of k, whose own head is h.
  std::map<std::string, Term> kernel = indices, row = indices;
  kernel["d"] = vocabulary.constant("j");
  row["i"] = row["j"] = vocabulary.constant("row");
  row["h"] = vocabulary.constant("row.h");
  row["d"] = vocabulary.constant("column");
  Specified out;
  std::set<std::string> seen, seen_reals, seen_whole, among_reals;
  const auto take_whole = [&](const spec::ExprPtr& x) {
    if (x->type == spec::Type::real || x->args.empty()) return;
    const Term t = term_of(x, kernel, vocabulary);
    if ((t.sort == Term::integer || t.sort == Term::boolean) && !is_literal(t.text) &&
        seen_whole.insert(t.text).second)
      out.whole.push_back(t);
  };
  const auto note = [&](const spec::ExprPtr& e) {
    spec::ExprPtr copy = e;
    spec::rewrite(copy, [&](const spec::ExprPtr& part) {
      const auto take = [&](const spec::ExprPtr& x, std::vector<Term>& to,
                            std::set<std::string>& known) {
        for (const auto* at : {&kernel, &row}) {
          const Term t = term_of(x, *at, vocabulary);
          if ((t.sort != Term::integer && t.sort != Term::boolean) || is_literal(t.text) ||
              !known.insert(t.text).second)
            continue;
          to.push_back(t);
          if (&to == &out.reals && t.sort == Term::integer)
            to.push_back(operation("-", Term::number(0), t));
        }
      };
      if (part->type != spec::Type::real) take(part, out.all, seen);
      if (part->type == spec::Type::real && part->kind != spec::Kind::read)
        for (const spec::ExprPtr& a : part->args) {
          if (a->type == spec::Type::integer && !spec::is_number(a)) {
            among_reals.insert(spec::print(a));
            out.data_among_reals |= spec::mentions(a, spec::Kind::read);
          }
          for (const spec::ExprPtr& x : summands(a)) take(x, out.reals, seen_reals);
        }
      if (part->type == spec::Type::real || part->kind == spec::Kind::read)
        std::for_each(part->args.begin(), part->args.end(), take_whole);
      return spec::ExprPtr();
    });
  };
  spec::Form copy = form;
  const spec::Family& family = spec::Family::of(form);
  family.each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    if (e) note(e);
  });
  for (const spec::RowMap& rows : family.turned_rows(form)) {
    for (const spec::ExprPtr& e : rows.sums) note(e);
    note(rows.element);
  }
  family.each_operand(copy, [&](spec::Operand& operand) {
    for (const spec::ExprPtr& e : operand.indices) note(e);
  });
  out.data_among_reals &= among_reals.size() > 1;
  return out;
}

}  // namespace kw::proofs
