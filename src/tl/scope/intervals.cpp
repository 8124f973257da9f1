// Ends at kFar are no bound; arithmetic on others saturates there.
#include "tl/scope/intervals.h"

#include <algorithm>

#include "tl/scope/functions.h"
#include "tl/scope/scope.h"

namespace kw::tl {
namespace {

int64_t clamp(__int128 x) {
  return x >= Interval::kFar    ? Interval::kFar
         : x <= -Interval::kFar ? -Interval::kFar
                                : static_cast<int64_t>(x);
}

Interval add(Interval a, Interval b) {
  const bool low = a.lo == -Interval::kFar || b.lo == -Interval::kFar,
             high = a.hi == Interval::kFar || b.hi == Interval::kFar;
  return {low ? -Interval::kFar : clamp(__int128{a.lo} + b.lo),
          high ? Interval::kFar : clamp(__int128{a.hi} + b.hi)};
}

Interval negate(Interval a) { return {-a.hi, -a.lo}; }

Interval multiply(Interval a, Interval b) {
  Interval out{Interval::kFar, -Interval::kFar};
  for (int64_t x : {a.lo, a.hi})
    for (int64_t y : {b.lo, b.hi}) {
      const int64_t p = clamp(__int128{x} * y);
      out = {std::min(out.lo, p), std::max(out.hi, p)};
    }
  return out;
}

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// The quotient's floor, for a divisor that is not negative.
Interval divide(Interval a, Interval b) {
  const int64_t small = std::max<int64_t>(b.lo, 1), big = std::max(b.hi, small);
  const int64_t lo = std::min(floor_div(a.lo, small), floor_div(a.lo, big));
  const int64_t hi = std::max(floor_div(a.hi, small), floor_div(a.hi, big));
  return {a.lo == -Interval::kFar ? -Interval::kFar : lo,
          a.hi == Interval::kFar ? Interval::kFar : hi};
}

// a >> n by one of an int's bits.
Interval shift_right(Interval a, Interval n) {
  if (n.lo < 0 || n.hi > 31) return {};
  return divide(a, {int64_t{1} << n.lo, int64_t{1} << n.hi});
}

// What a & b, a | b, a ^ b have of a sign; & also has no bit that a side without a sign has not.
Interval bits(const std::string& op, Interval a, Interval b) {
  const bool both = a.lo >= 0 && b.lo >= 0;
  if (op != "&") return both ? Interval{0, Interval::kFar} : Interval{};
  if (a.lo < 0 && b.lo < 0) return {};
  return {0, both ? std::min(a.hi, b.hi) : a.lo >= 0 ? a.hi : b.hi};
}

Interval range_of_call(const Expr& e, const Scope& scope) {
  std::vector<Interval> a;
  for (const ExprPtr& x : e.args) a.push_back(interval_of(x, scope));
  if (e.text == "min" && a.size() == 2)
    return {std::min(a[0].lo, a[1].lo), std::min(a[0].hi, a[1].hi)};
  if (e.text == "max" && a.size() == 2)
    return {std::max(a[0].lo, a[1].lo), std::max(a[0].hi, a[1].hi)};
  if (e.text == "abs" && a.size() == 1)
    return {a[0].lo > 0 ? a[0].lo : a[0].hi < 0 ? -a[0].hi : 0, std::max(a[0].hi, -a[0].lo)};
  if (e.text == "ceil_div" && a.size() == 2 && a[1].lo >= 0) {
    const Interval floor = divide(add(a[0], {-1, -1}), a[1]);
    return add(floor, {1, 1});
  }
  if (e.text == "heads_at_once") return {1, Interval::kFar};
  if (numbers_blocks(e.text)) return {0, Interval::kFar};
  return {};
}

Interval of_binary(const Expr& e, const Scope& scope) {
  const Interval a = interval_of(e.args[0], scope), b = interval_of(e.args[1], scope);
  if (e.text == "+") return add(a, b);
  if (e.text == "-") return add(a, negate(b));
  if (e.text == "*") return multiply(a, b);
  if (e.text == "//" && b.lo >= 0) return divide(a, b);
  if (e.text == "%" && b.lo >= 0) {
    const int64_t top = b.hi == Interval::kFar ? Interval::kFar : std::max<int64_t>(b.hi - 1, 0);
    return {0, a.lo >= 0 ? std::min(a.hi, top) : top};
  }
  if (e.text == ">>") return shift_right(a, b);
  if (e.text == "&" || e.text == "|" || e.text == "^") return bits(e.text, a, b);
  return {};
}

}  // namespace

Interval interval_of(const ExprPtr& e, const Scope& scope) {
  switch (e->kind) {
    case ExprKind::integer: {
      const int64_t value = std::stoll(e->text);
      return {value, value};
    }
    case ExprKind::name: {
      const Symbol* s = scope.find(e->text);
      return s ? s->range : Interval{};
    }
    case ExprKind::field:
      return {0, Interval::kFar};
    case ExprKind::call:
      return range_of_call(*e, scope);
    case ExprKind::binary:
      return of_binary(*e, scope);
    case ExprKind::unary:
      return e->text == "-" ? negate(interval_of(e->args[0], scope)) : Interval{};
    case ExprKind::where: {
      const Interval a = interval_of(e->args[1], scope), b = interval_of(e->args[2], scope);
      return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
    case ExprKind::real:
    case ExprKind::index:
      return {};
  }
  return {};
}

bool shifts_within_an_int(const ExprPtr& count, const Scope& scope) {
  const Interval n = interval_of(count, scope);
  return n.lo >= 0 && n.hi <= 31;
}

bool division_truncates_alike(const ExprPtr& a, const ExprPtr& b, const Scope& scope) {
  return interval_of(a, scope).lo >= 0 && interval_of(b, scope).lo >= 0;
}

}  // namespace kw::tl
