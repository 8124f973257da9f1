#include <cmath>

#include "operator/expr/fold.h"

namespace kw::spec {

double evaluate(const ExprPtr& e, const Scope& scope) {
  switch (e->kind) {
    case Kind::number:
      return e->value;
    case Kind::infinity:
      return HUGE_VAL;
    case Kind::index:
    case Kind::size:
      return static_cast<double>(scope.indices.at(e->name));
    case Kind::score:
      return scope.scores.at(score_number(*e));
    case Kind::output:
      return scope.output;
    case Kind::total:
      return scope.totals.at(std::stoul(e->name));
    case Kind::argument:
      return scope.scalars.at(e->name);
    case Kind::read: {
      std::vector<int64_t> indices;
      for (const ExprPtr& a : e->args) indices.push_back(static_cast<int64_t>(evaluate(a, scope)));
      return scope.read(e->name, indices);
    }
    case Kind::where:
      return evaluate(e->args[evaluate(e->args[0], scope) != 0 ? 1 : 2], scope);
    case Kind::unary:
      return apply(op_of(e->kind, e->name), evaluate(e->args[0], scope), 0);
    case Kind::binary: {
      const double a = evaluate(e->args[0], scope);
      // The right side of and/or may read out of range where the left side guards it.
      if (e->name == "and" && a == 0) return 0;
      if (e->name == "or" && a != 0) return 1;
      return apply(op_of(e->kind, e->name), a, evaluate(e->args[1], scope));
    }
  }
  return 0;
}

}  // namespace kw::spec
