#include "operator/expr/steps.h"

#include <algorithm>
#include <cmath>

#include "operator/expr/linear.h"

namespace kw::spec {
namespace {

constexpr int64_t kFarthest = int64_t{1} << 30;  // beyond any coordinate
constexpr int64_t kEveryOne = 2048;              // so many values at both ends are all looked at

using Function = std::function<std::optional<double>(int64_t)>;

// 0, and the powers of two of both signs.
std::vector<int64_t> landmarks() {
  std::vector<int64_t> out = {0};
  for (int64_t x = 1; x <= kFarthest; x *= 2) out.push_back(x), out.push_back(-x);
  std::sort(out.begin(), out.end());
  return out;
}

// The first or the last value between `inside`, which f has, and `outside`, which it has not.
int64_t last_inside(const Function& f, int64_t inside, int64_t outside) {
  while (std::abs(outside - inside) > 1) {
    const int64_t middle = inside + (outside - inside) / 2;
    (f(middle) ? inside : outside) = middle;
  }
  return inside;
}

struct Step {
  int64_t at;  // the first n behind it
  double by;
};

// Where f, which is monotone, changes between a and b.
bool find_steps(const Function& f, int64_t a, double at_a, int64_t b, double at_b,
                std::vector<Step>& out) {
  if (at_a == at_b) return true;
  if (b - a == 1) {
    out.push_back({b, at_b - at_a});
    return out.size() <= kMostSteps;
  }
  const int64_t middle = a + (b - a) / 2;
  const std::optional<double> m = f(middle);
  return m && find_steps(f, a, at_a, middle, *m, out) && find_steps(f, middle, *m, b, at_b, out);
}

// Whether f is the sum of its steps at many values, and goes one way.
bool are_all(const Function& f, int64_t low, int64_t high, double first,
             const std::vector<Step>& steps) {
  for (const Step& s : steps)
    if ((s.by > 0) != (steps[0].by > 0)) return false;
  const auto agrees = [&](int64_t n) {
    double sum = first;
    for (const Step& s : steps)
      if (n >= s.at) sum += s.by;
    const std::optional<double> value = f(n);
    return value && *value == sum;
  };
  for (int64_t k = 0; k < kEveryOne && k <= high - low; ++k)
    if (!agrees(low + k) || !agrees(high - k)) return false;
  for (const int64_t n : landmarks())
    if (n > low && n < high && !(agrees(n - 1) && agrees(n + 1))) return false;
  return true;
}

// A condition as  sum <= 0  of integers.
std::optional<Linear> at_most_zero(const ExprPtr& e) {
  if (e->kind != Kind::binary || (e->name != "<" && e->name != "<=") ||
      e->args[0]->type != Type::integer || e->args[1]->type != Type::integer)
    return std::nullopt;
  Linear sum = add(linear(e->args[0]), linear(e->args[1]), -1);
  if (e->name == "<") ++sum.constant;
  return sum;
}

// A term of a sum that is one of two numbers: `low`, and `rise` more where condition <= 0.
struct Choice {
  Linear condition;
  int64_t low, rise;
};

std::optional<Choice> choice_of(const Linear::Term& t) {
  const ExprPtr& e = t.atom;
  if (e->kind != Kind::where || e->args[1]->kind != Kind::number ||
      e->args[2]->kind != Kind::number)
    return std::nullopt;
  const std::optional<Linear> condition = at_most_zero(e->args[0]);
  const int64_t low = e->args[2]->integer * t.factor, high = e->args[1]->integer * t.factor;
  if (!condition || high <= low) return std::nullopt;
  return Choice{*condition, low, high - low};
}

// The choices of such a sum, from the one whose condition holds first; nothing if they are not all
// of one integer in one direction.
std::optional<std::vector<Choice>> choices_of(const Linear& sum) {
  std::vector<Choice> out;
  for (const Linear::Term& t : sum.terms) {
    const std::optional<Choice> c = choice_of(t);
    if (!c || (!out.empty() && !add(c->condition, out[0].condition, -1).is_constant()))
      return std::nullopt;
    out.push_back(*c);
  }
  std::sort(out.begin(), out.end(), [](const Choice& a, const Choice& b) {
    return a.condition.constant < b.condition.constant;
  });
  return out;
}

ExprPtr with_rise(const Linear& condition, int64_t rise) {
  return where(solved(condition, false), integer(rise), integer(0));
}

}  // namespace

ExprPtr steps_of(const ExprPtr& n, const Function& f) {
  std::vector<int64_t> inside;
  const std::vector<int64_t> all = landmarks();
  for (const int64_t x : all)
    if (f(x)) inside.push_back(x);
  if (inside.empty()) return nullptr;
  int64_t low = inside.front(), high = inside.back();
  if (low != all.front()) low = last_inside(f, low, *(std::find(all.begin(), all.end(), low) - 1));
  if (high != all.back())
    high = last_inside(f, high, *(std::find(all.begin(), all.end(), high) + 1));
  const double first = *f(low), last = *f(high);
  std::vector<Step> steps;
  if (std::fabs(last - first) > kMostSteps || !find_steps(f, low, first, high, last, steps) ||
      !are_all(f, low, high, first, steps))
    return nullptr;
  // Falling steps are rises the other way round: f(high) and one more below each.
  const bool falls = last < first;
  Linear out;
  out.constant = static_cast<int64_t>(falls ? last : first);
  for (const Step& s : steps) {
    const ExprPtr passed = falls ? binary("<", n, integer(s.at)) : binary("<=", integer(s.at), n);
    out.terms.push_back(
        {where(passed, integer(1), integer(0)), static_cast<int64_t>(std::fabs(s.by))});
  }
  return to_expr(out);
}

ExprPtr clamped_steps(const std::string& op, const ExprPtr& x, int64_t bound) {
  const Linear sum = linear(x);
  const std::optional<std::vector<Choice>> choices = choices_of(sum);
  if (sum.is_constant() || !choices) return nullptr;
  const auto clamp = [&](int64_t v) {
    return op == "min" ? std::min(v, bound) : std::max(v, bound);
  };
  int64_t value = sum.constant;  // behind the rises so far
  for (const Choice& c : *choices) value += c.low;
  Linear out;
  out.constant = clamp(value);
  for (const Choice& c : *choices) {
    const int64_t rise = clamp(value + c.rise) - clamp(value);
    value += c.rise;
    if (rise != 0) out.terms.push_back({with_rise(c.condition, rise), 1});
  }
  return to_expr(out);
}

ExprPtr steps_under(const ExprPtr& condition, const ExprPtr& x) {
  const std::optional<Linear> known = at_most_zero(condition);
  if (!known || x->type != Type::integer) return nullptr;
  const Linear sum = linear(x);
  Linear out;
  out.constant = sum.constant;
  bool changed = false;
  for (const Linear::Term& t : sum.terms) {
    const std::optional<Choice> c = choice_of(t);
    const Linear more = c ? add(c->condition, *known, -1) : Linear{{t}, 0};
    const Linear less = c ? add(c->condition, *known) : Linear{{t}, 0};
    const bool holds = more.is_constant() && more.constant <= 0;  // condition <= known <= 0
    const bool fails = less.is_constant() && less.constant > 0;   // condition > -known >= 0
    changed = changed || holds || fails;
    if (holds || fails)
      out.constant += c->low + (holds ? c->rise : 0);
    else
      out.terms.push_back(t);
  }
  return changed ? to_expr(out) : nullptr;
}

}  // namespace kw::spec
