// Whether one head is like another: it is when the head is asked for as a place along the heads of
// an argument and as nothing else. A table that is longer than there are heads, for all that is
// known, is read at the head's number.
#include <algorithm>

#include "operator/families/attention/attention.h"

namespace kw::spec {
namespace {

bool is(const Size& a, const Size& b) { return a.name == b.name && a.constant == b.constant; }

// Whether dimension d of what e reads is the heads'. An operand's own elements are read at one.
bool is_heads(const Form& form, const ExprPtr& e, size_t d) {
  for (const Term& t : form.terms)
    for (const Operand* o : operands(t))
      if (e->name == o->argument) return true;
  const Argument* a = form.argument(e->name);
  return a && d < a->dims.size() && (is(a->dims[d], form.H) || is(a->dims[d], form.G));
}

// h occurs in e other than as a place along the heads of an argument.
bool computes_with_head(const Form& form, const ExprPtr& e) {
  if (e->kind == Kind::index) return e->name == "h";
  for (size_t n = 0; n < e->args.size(); ++n) {
    const bool place = e->kind == Kind::read && e->args[n]->kind == Kind::index;
    if (place && (e->args[n]->name != "h" || is_heads(form, e, n))) continue;
    if (computes_with_head(form, e->args[n])) return true;
  }
  return false;
}

}  // namespace

ExprPtr head_of(const Operand& operand) {
  for (const ExprPtr& e : operand.indices)
    if (mentions(e, Kind::index, "h")) return e;
  return nullptr;
}

bool attention::heads_are_alike(const Form& form) {
  const auto computes = [&](const ExprPtr& e) { return e && computes_with_head(form, e); };
  if (computes(form.epilogue)) return false;
  for (const Term& t : form.terms) {
    if (computes(t.score) || computes(t.keep) || computes(t.sink) || computes(t.factor))
      return false;
    for (const Operand* o : operands(t)) {
      if (!o->row) continue;
      if (computes(o->row->element) ||
          std::any_of(o->row->sums.begin(), o->row->sums.end(), computes))
        return false;
    }
  }
  return true;
}

}  // namespace kw::spec
