// Integers that are made of reals: int(), floor() and ceil().
//
// Of a quotient of integers they are a division that floors. Of a function of one integer, such as
// the logarithm of a distance, they are a step function, and where it steps is found by computing
// it: at numbers in the place of the coordinates every operator folds, one after the other, in fp64
// and in the order in which the user wrote them. (Of names, the simplifications would have moved
// factors about.) What is left as it is, no kernel can compute. Where its real is exact, as i *
// 0.25 is, whoever meets it says so; where it is rounded, a factor that was moved about makes
// another integer, and it is refused here.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

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

// n of float(n), -n of -float(n), or a number that is whole; null of anything else.
ExprPtr integer_of(const ExprPtr& e) {
  if (e->type == Type::integer) return e;
  if (e->kind == Kind::unary && e->name == "-") {
    const ExprPtr n = integer_of(e->args[0]);
    return n ? unary("-", n) : nullptr;
  }
  if (e->kind == Kind::unary && e->name == "float" && e->args[0]->type == Type::integer)
    return e->args[0];
  const bool whole = e->kind == Kind::number && e->value == std::floor(e->value);
  return whole && std::fabs(e->value) < 1 << 30 ? integer(static_cast<int64_t>(e->value)) : nullptr;
}

bool is_not_negative(const ExprPtr& e) {
  if (e->kind == Kind::number) return e->integer >= 0;
  if (e->kind == Kind::index || e->kind == Kind::size) return true;
  if (e->kind == Kind::unary) return e->name == "abs";
  const bool sum = e->kind == Kind::binary && (e->name == "+" || e->name == "*");
  return sum && is_not_negative(e->args[0]) && is_not_negative(e->args[1]);
}

// Of the quotient a / b of an integer and a positive integer, as divisions that floor; else null.
ExprPtr whole_quotient(const ExprPtr& a, const ExprPtr& b, const std::string& how) {
  const ExprPtr n = integer_of(a), d = integer_of(b);
  if (!n || !d || d->kind != Kind::number || d->integer <= 0) return nullptr;
  const ExprPtr down = binary("//", n, d);
  const ExprPtr up = unary("-", binary("//", unary("-", n), d));
  if (how == "floor") return unary("float", down);
  if (how == "ceil") return unary("float", up);
  return is_not_negative(n) ? down : where(binary("<", n, integer(0)), up, down);
}

// Whether fp64 has e exactly, in whatever order it is computed, for integers below 2^24.
bool is_exact(const ExprPtr& e) {
  if (e->type != Type::real) return true;
  if (e->kind == Kind::number) {
    const double parts = std::ldexp(e->value, 20);
    return parts == std::floor(parts) && std::fabs(e->value) < 1 << 24;
  }
  static const std::set<std::string_view> exact = {"float", "-", "abs", "relu", "floor", "ceil",
                                                   "+",     "*", "min", "max",  "%",     "where"};
  if (exact.count(e->name) == 0) return false;
  return std::all_of(e->args.begin(), e->args.end(), is_exact);
}

// What is as it was, or refused where it is made of positions and rounded.
ExprPtr unless_rounded(Elements& g, const Node& n, const ExprPtr& plain, const ExprPtr& x) {
  const bool positions =
      mentions(x, Kind::index) && !mentions(x, Kind::read) && !mentions(x, Kind::argument);
  if (!positions || is_exact(x)) return plain;
  return g.refuse(
      n,
      fmt::format("an integer is made of a real here that is rounded, and has more than {} "
                  "steps: which one it is depends on how the real was rounded",
                  kMostSteps),
      "divide integers, as in d // 49, or compute the integers beforehand and pass a "
      "table of ints: table[i - j]",
      "spec.rounding");
}

}  // namespace

ExprPtr toward_zero(const std::string& op, const ExprPtr& a, const ExprPtr& b) {
  const bool integers = a->type == Type::integer && b->type == Type::integer;
  if (!integers || b->kind != Kind::number || b->integer == 0) return nullptr;
  if (b->integer == std::numeric_limits<int64_t>::min()) return nullptr;  // it has no positive
  const bool turned = op == "//" && b->integer < 0;
  const ExprPtr d = integer(std::abs(b->integer)), n = turned ? unary("-", a) : a;
  const ExprPtr down = binary(op, n, d);
  if (is_not_negative(n)) return down;
  return where(binary("<", n, integer(0)), unary("-", binary(op, unary("-", n), d)), down);
}

ExprPtr floor_of_quotient(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr a = g.broadcast(n.arg(0), at), b = g.broadcast(n.arg(1), at);
  if (a->type != Type::real && b->type != Type::real) return binary("//", a, b);
  if (const ExprPtr quotient = whole_quotient(a, b, "floor")) return quotient;
  const ExprPtr x = binary("/", a, b);
  return unless_rounded(g, n, unary("floor", x), x);
}

ExprPtr whole_of(Elements& g, const Node& n, const Indices& at, const std::string& how) {
  const ExprPtr x = g.broadcast(n.arg(0), at), plain = unary(how, x);
  if (plain->kind != Kind::unary || plain->name != how || g.failed()) return plain;
  const Node& of_node = n.arg(0).kind == Value::Kind::node ? g.node(n.arg(0).node) : n;
  const bool divides = of_node.op == "div" || of_node.op == "true_divide";
  if (divides && of_node.arg(2, "rounding_mode").kind != Value::Kind::text)
    if (const ExprPtr quotient =
            whole_quotient(g.broadcast(of_node.arg(0), at), g.broadcast(of_node.arg(1), at), how))
      return quotient;
  g.note_rounding(n.span);
  ExprPtr of;
  if (!mentions(x, Kind::index) || !only_integer(x, of) || !of)
    return unless_rounded(g, n, plain, x);
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
  if (!steps) return unless_rounded(g, n, plain, x);
  return how == "int" ? steps : unary("float", steps);
}

}  // namespace kw::spec
