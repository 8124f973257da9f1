// Whether one head is like another.
#include "spec/form.h"

namespace kw::spec {
namespace {

// h occurs in e other than as a whole index of an argument.
bool computes_with_head(const ExprPtr& e) {
  if (e->kind == Kind::index) return e->name == "h";
  for (const ExprPtr& arg : e->args) {
    if (e->kind == Kind::read && arg->kind == Kind::index) continue;
    if (computes_with_head(arg)) return true;
  }
  return false;
}

}  // namespace

bool heads_are_alike(const Form& form) {
  if (form.epilogue && computes_with_head(form.epilogue)) return false;
  for (const Term& t : form.terms) {
    for (const ExprPtr& e : {t.score, t.keep, t.sink})
      if (e && computes_with_head(e)) return false;
    for (const Operand* o : {&t.q, &t.k, &t.v}) {
      if (!o->row) continue;
      if (computes_with_head(o->row->element)) return false;
      for (const ExprPtr& sum : o->row->sums)
        if (computes_with_head(sum)) return false;
    }
  }
  return true;
}

}  // namespace kw::spec
