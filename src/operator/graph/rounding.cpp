// Integers that are made of reals: int(), floor() and ceil().
//
// Of a quotient of integers they are a division that floors. Of a function of one integer, such as
// the logarithm of a distance, they are a step function, and where it steps is found by computing
// it: at numbers in the place of the coordinates every operator folds, one after the other, in fp64
// and in the order in which the user wrote them. (Of names, the simplifications would have moved
// factors about.) What is left as it is, no kernel can compute; whoever meets it says so.
#include <algorithm>
#include <cmath>

#include "operator/evaluate/evaluate.h"
#include "operator/expr/fold.h"
#include "operator/expr/steps.h"
#include "operator/graph/normalise.h"

namespace kw::spec {
namespace {

// The one integer through which coordinates come into e; null where there are several, or where
// other things come in, whose values are not known here. `found` is what is known already.
bool only_integer(const ExprPtr& e, ExprPtr& found) {
  if (e->type == Type::integer && mentions(e, Kind::index)) {
    for (const Kind other : {Kind::size, Kind::argument, Kind::read})
      if (mentions(e, other)) return false;
    if (!found) found = e;
    return equal(found, e);
  }
  if (e->kind == Kind::number || e->kind == Kind::infinity) return true;
  if (e->args.empty() || e->kind == Kind::read) return false;
  return std::all_of(e->args.begin(), e->args.end(),
                     [&](const ExprPtr& a) { return only_integer(a, found); });
}

std::vector<std::string> indices_in(const ExprPtr& e) {
  std::vector<std::string> out;
  if (e->kind == Kind::index) out.push_back(e->name);
  for (const ExprPtr& a : e->args)
    for (const std::string& name : indices_in(a))
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  return out;
}

using Coordinates = std::map<std::string, int64_t>;

// Coordinates at which n has this value: one of them about as large, the others 0.
std::optional<Coordinates> coordinates_for(const ExprPtr& n, int64_t value) {
  Scope scope;
  const std::vector<std::string> names = indices_in(n);
  for (const std::string& name : names)
    for (const int64_t off : {0, -1, 1}) {
      for (const std::string& other : names) scope.indices[other] = 0;
      scope.indices[name] = std::abs(value) + off;
      if (scope.indices[name] >= 0 && evaluate(n, scope) == static_cast<double>(value))
        return scope.indices;
    }
  return std::nullopt;
}

}  // namespace

ExprPtr whole_of(Elements& g, const Node& n, const Indices& at, const std::string& how) {
  const ExprPtr x = g.broadcast(n.arg(0), at), plain = unary(how, x);
  if (plain->kind != Kind::unary || plain->name != how || g.failed()) return plain;
  g.note_rounding(n.span);
  ExprPtr of;
  if (!mentions(x, Kind::index) || !only_integer(x, of) || !of) return plain;
  const auto value = [&](int64_t v) -> std::optional<double> {
    const std::optional<Coordinates> where = coordinates_for(of, v);
    if (!where) return std::nullopt;
    Indices numbers;
    for (const ExprPtr& index : at)
      numbers.push_back(rewrite(index, [&](const ExprPtr& e) -> ExprPtr {
        const auto found = where->find(e->kind == Kind::index ? e->name : "");
        return found == where->end() ? nullptr : integer(found->second);
      }));
    const std::optional<double> y = constant(g.broadcast(n.arg(0), numbers));
    if (!y || !std::isfinite(*y)) return std::nullopt;
    return how == "floor" ? std::floor(*y) : how == "ceil" ? std::ceil(*y) : std::trunc(*y);
  };
  const ExprPtr steps = steps_of(of, value);
  if (!steps) return plain;
  return how == "int" ? steps : unary("float", steps);
}

}  // namespace kw::spec
