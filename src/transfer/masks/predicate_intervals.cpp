#include "transfer/masks/predicate_intervals.h"

#include <algorithm>
#include <cmath>

#include "operator/expr/linear.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;
using spec::Type;

constexpr Interval kBoolean{0, 1};

// inf - inf and 0 * inf say nothing.
double low_or(double x) { return std::isnan(x) ? -kInfinity : x; }
double high_or(double x) { return std::isnan(x) ? kInfinity : x; }

// Rounded outward by one unit, since fp64 rounds to nearest.
Interval outward(Interval x) {
  return {std::nextafter(x.low, -kInfinity), std::nextafter(x.high, kInfinity)};
}

Interval hull(Interval a, Interval b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

Interval truth(bool surely, bool surely_not) {
  return surely ? Interval{1, 1} : surely_not ? Interval{0, 0} : kBoolean;
}

Interval sum(Interval a, Interval b) { return {low_or(a.low + b.low), high_or(a.high + b.high)}; }

Interval product(Interval a, Interval b) {
  Interval out{kInfinity, -kInfinity};
  for (const double x : {a.low, a.high})
    for (const double y : {b.low, b.high}) {
      const double p = x == 0 || y == 0 ? 0 : x * y;  // a bound is a limit: 0 times it is 0
      out = hull(out, {p, p});
    }
  return out;
}

Interval times(Interval a, double k) { return product(a, {k, k}); }

// a / b over b > 0; `floored` for //.
Interval quotient(Interval a, Interval b, bool floored) {
  if (!(b.low > 0)) return {};
  Interval out{kInfinity, -kInfinity};
  for (const double x : {a.low, a.high})
    for (const double y : {b.low, b.high}) {
      double q = x / y;
      if (std::isnan(q)) return {};
      if (floored) q = x < 0 && std::isinf(y) ? -1 : std::floor(q);
      out = hull(out, {q, q});
    }
  return out;
}

Interval modulo(Interval a, Interval b) {
  if (!(b.low > 0)) return {};
  const Interval whole = quotient(a, b, true);
  if (b.low == b.high && whole.low == whole.high && std::isfinite(whole.low))
    return {a.low - whole.low * b.low, a.high - whole.low * b.low};
  return {0, std::isinf(b.high) ? std::max(0.0, a.low >= 0 ? a.high : kInfinity) : b.high - 1};
}

// a >> n and a << n: by a count of 0 to 62, over whose ends they are monotone.
Interval shifted(Interval a, Interval n, bool left) {
  if (!(n.low >= 0 && n.high <= 62)) return {};
  const Interval power{std::exp2(n.low), std::exp2(n.high)};
  return left ? product(a, power) : quotient(a, power, true);
}

// a & b has no bit that a side without a sign has not.
Interval common_bits(Interval a, Interval b) {
  if (a.is(b.low) && b.is(a.low)) return a;
  if (a.low < 0 && b.low < 0) return {};
  return {0, a.low < 0 ? b.high : b.low < 0 ? a.high : std::min(a.high, b.high)};
}

// a | b and a ^ b of what has no sign: less than the next power of two.
Interval joined_bits(Interval a, Interval b) {
  if (a.low < 0 || b.low < 0) return {};
  const double top = std::max(a.high, b.high);
  if (std::isinf(top)) return {0, kInfinity};
  return {0, std::exp2(std::ceil(std::log2(top + 1))) - 1};
}

Interval linear_range(const spec::Linear& terms, const Box& box) {
  Interval out{double(terms.constant), double(terms.constant)};
  for (const auto& [atom, factor] : terms.terms)
    out = sum(out, times(range(atom, box), double(factor)));
  return out;
}

// a - b, with what stands on both sides cancelled where both are integers.
Interval difference(const ExprPtr& a, const ExprPtr& b, const Box& box) {
  if (a->type == Type::integer && b->type == Type::integer)
    return linear_range(spec::add(spec::linear(a), spec::linear(b), -1), box);
  return outward(sum(range(a, box), times(range(b, box), -1)));
}

Interval compared(const std::string& op, const ExprPtr& a, const ExprPtr& b, const Box& box) {
  const Interval d = difference(a, b, box);
  if (op == "<") return truth(d.high < 0, d.low >= 0);
  if (op == "<=") return truth(d.high <= 0, d.low > 0);
  if (op == ">") return truth(d.low > 0, d.high <= 0);
  if (op == ">=") return truth(d.low >= 0, d.high < 0);
  const Interval equal = truth(d.is(0), d.low > 0 || d.high < 0);
  return op == "==" ? equal : Interval{1 - equal.high, 1 - equal.low};
}

bool is_comparison(const std::string& op) {
  return op == "==" || op == "!=" || op == "<" || op == "<=" || op == ">" || op == ">=";
}

Interval of_binary(const spec::Expr& e, const Box& box) {
  if (is_comparison(e.name)) return compared(e.name, e.args[0], e.args[1], box);
  const Interval a = range(e.args[0], box), b = range(e.args[1], box);
  if (e.name == "and") return {std::min(a.low, b.low), std::min(a.high, b.high)};
  if (e.name == "or") return {std::max(a.low, b.low), std::max(a.high, b.high)};
  if (e.name == "min") return {std::min(a.low, b.low), std::min(a.high, b.high)};
  if (e.name == "max") return {std::max(a.low, b.low), std::max(a.high, b.high)};
  if (e.type == Type::integer) {
    if (e.name == "*") return product(a, b);
    if (e.name == "//") return quotient(a, b, true);
    if (e.name == "%") return modulo(a, b);
    if (e.name == "<<" || e.name == ">>") return shifted(a, b, e.name == "<<");
    if (e.name == "&") return common_bits(a, b);
    if (e.name == "|" || e.name == "^") return joined_bits(a, b);
    return {};
  }
  if (e.name == "+") return outward(sum(a, b));
  if (e.name == "-") return outward(sum(a, times(b, -1)));
  if (e.name == "*") return outward(product(a, b));
  if (e.name == "/") return outward(quotient(a, b, false));
  return {};
}

Interval of_unary(const spec::Expr& e, const Box& box) {
  const Interval a = range(e.args[0], box);
  if (e.name == "not") return {1 - a.high, 1 - a.low};
  if (e.name == "-") return times(a, -1);
  if (e.name == "float") return a;
  if (e.name == "abs") {
    const double top = std::max(std::fabs(a.low), std::fabs(a.high));
    return {a.low <= 0 && a.high >= 0 ? 0 : std::min(std::fabs(a.low), std::fabs(a.high)), top};
  }
  if (e.name == "int") return {std::trunc(a.low), std::trunc(a.high)};
  if (e.name == "floor") return {std::floor(a.low), std::floor(a.high)};
  if (e.name == "ceil") return {std::ceil(a.low), std::ceil(a.high)};
  if (e.name == "relu") return {std::max(0.0, a.low), std::max(0.0, a.high)};
  if (e.name == "tanh") return outward({std::tanh(a.low), std::tanh(a.high)});
  if (e.name == "exp") return outward({std::exp(a.low), std::exp(a.high)});
  if (e.name == "exp2") return outward({std::exp2(a.low), std::exp2(a.high)});
  return {};
}

Interval of_read(const spec::Expr& e, const Box& box) {
  const Interval anything = e.type == Type::boolean ? kBoolean : Interval{};
  if (!box.read) return anything;
  std::vector<Interval> at;
  for (const ExprPtr& index : e.args) at.push_back(range(index, box));
  return box.read(e.name, at);
}

Interval of_name(const spec::Expr& e, const Box& box) {
  if (const auto known = box.names.find(e.name); known != box.names.end()) return known->second;
  if (e.type == Type::boolean) return kBoolean;
  if (e.kind == Kind::size) return {1, kInfinity};
  return e.kind == Kind::index ? Interval{0, kInfinity} : Interval{};
}

}  // namespace

Interval range(const ExprPtr& e, const Box& box) {
  switch (e->kind) {
    case Kind::number:
      return {e->value, e->value};
    case Kind::infinity:
      return {kInfinity, kInfinity};
    case Kind::index:
    case Kind::size:
    case Kind::argument:
      return of_name(*e, box);
    case Kind::score:
    case Kind::output:
    case Kind::total:
      return {};
    case Kind::read:
      return of_read(*e, box);
    case Kind::unary:
      return of_unary(*e, box);
    case Kind::binary:
      if (e->type == Type::integer && (e->name == "+" || e->name == "-"))
        return linear_range(spec::linear(e), box);
      return of_binary(*e, box);
    case Kind::where: {
      const Interval c = range(e->args[0], box);
      if (c.is(1)) return range(e->args[1], box);
      if (c.is(0)) return range(e->args[2], box);
      return hull(range(e->args[1], box), range(e->args[2], box));
    }
  }
  return {};
}

Kept kept(const ExprPtr& keep, const Box& box) {
  if (!keep) return Kept::all;
  const Interval r = range(keep, box);
  return r.is(1) ? Kept::all : r.is(0) ? Kept::none : Kept::partial;
}

}  // namespace kw::transfer
