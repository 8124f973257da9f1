#include "check/far_arguments.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "check/planted.h"
#include "operator/family.h"

namespace kw::check {
namespace {

using spec::ExprPtr;
using spec::Form;
using spec::Kind;
using spec::Problem;

constexpr double kMostOfScores = 1000;    // of a softmax
constexpr double kMostOfOthers = 0x1p60;  // sums of them and their products stay in range

// An expression of the form, at which of its elements it counts, and how large it may become.
struct Looked {
  ExprPtr e, keep;
  double most = kMostOfOthers;
};

// What the rows of operands become, masks and integers are of no interest here.
std::vector<Looked> looked_at(const Form& form) {
  std::set<const spec::Expr*> others, limited;
  Form copy = form;
  const spec::Family& family = spec::Family::of(form);
  family.each_operand(copy, [&](spec::Operand& o) {
    if (!o.row) return;
    others.insert(o.row->element.get());
    for (const ExprPtr& e : o.row->sums) others.insert(e.get());
  });
  for (const spec::Term& t : form.terms) {
    limited.insert(t.sink.get());
    if (t.normaliser == spec::Normaliser::softmax) limited.insert(t.score.get());
  }
  std::vector<Looked> out;
  family.each_expression(copy, [&](ExprPtr& e, const spec::Extents&) {
    if (!e || e->type != spec::Type::real || others.count(e.get()) ||
        spec::mentions(e, Kind::total))
      return;
    const bool of_pairs = spec::mentions(e, Kind::score) || spec::mentions(e, Kind::index, "j");
    out.push_back({e, of_pairs && !form.terms.empty() ? form.terms[0].keep : nullptr,
                   limited.count(e.get()) ? kMostOfScores : kMostOfOthers});
  });
  return out;
}

// The first of a dimension, the middle and the last, and neighbours; of rows, of which several
// arguments may be far at once, these and up to 64 more.
std::vector<int64_t> some_of(int64_t size, int64_t more = 0) {
  std::set<int64_t> out;
  for (int64_t n = 0; n < std::min(size, more); ++n) out.insert(n * size / std::min(size, more));
  for (const int64_t n :
       {int64_t{0}, int64_t{1}, int64_t{2}, size / 2, size / 2 + 1, size / 2 + 2, size - 1})
    out.insert(std::clamp<int64_t>(n, 0, size - 1));
  return {out.begin(), out.end()};
}

bool agrees(const Looked& looked, const spec::Scope& scope) {
  if (looked.keep && spec::evaluate(looked.keep, scope) == 0) return true;
  const double x = spec::evaluate(looked.e, scope), rounded = evaluate_in_fp32(looked.e, scope);
  return std::fabs(x) <= looked.most && std::fabs(rounded - x) <= 0x1p-10 * std::fabs(x) + 0x1p-126;
}

// Whether the function can do what the problem asks of it.
bool stays_finite(const Form& form, const Case& c, const Problem& problem) {
  constexpr double kProducts[] = {0, 10, -10}, kOutputs[] = {0.5, -0.5};
  const std::vector<Looked> all = looked_at(form);
  spec::Scope scope = scope_of(problem);
  scope.indices["b"] = scope.indices["d"] = 0;
  size_t n = 0;
  for (const int64_t h : c.heads)
    for (const int64_t i : some_of(spec::value_of(form.M, problem.sizes), 64))
      for (const int64_t j : some_of(spec::value_of(form.N, problem.sizes))) {
        scope.indices["h"] = h, scope.indices["i"] = i, scope.indices["j"] = j;
        for (size_t s = 0; s < scope.scores.size(); ++s) scope.scores[s] = kProducts[(n + s) % 3];
        scope.output = kOutputs[n++ % 2];
        for (const Looked& looked : all)
          if (!agrees(looked, scope)) return false;
      }
  return true;
}

// Near which numbers a third of the elements lie, and another third (0: these are as drawn). The
// first that the function can do are taken: of a sigmoid's derivative fp32 has 0 at 30, where it is
// 10^-13, and at 100 nobody can tell.
struct Reach {
  double far, between;
};
constexpr Reach kReaches[] = {{100, 30}, {100, 0}, {30, 10}, {30, 0}, {10, 3}, {3, 1}};

// The first of the case's heads has an element that is far away in a vector with one for each head.
void plant_elements(const Reach& reach, double sign, bool divides, int64_t first_head, Tensor& t) {
  for (size_t n = 0; n < t.values.size(); ++n) {
    const int64_t third = (int64_t(n) + 2 * first_head) % 3, turn = int64_t(n) / 3 % 2;
    double& x = t.values[n];
    if (third == 0) x = sign * reach.far * (turn ? 0.9 : 1);
    if (third == 2 && reach.between != 0) x = turn && !divides ? 0 : sign * reach.between;
    x = drawn(t.dtype, x);
  }
}

}  // namespace

std::vector<std::string> further_arguments(const Form& form) {
  std::set<std::string> read, operands;
  for (const Looked& looked : looked_at(form)) add_reads(looked.e, read);
  Form copy = form;
  spec::Family::of(form).each_operand(copy, [&](spec::Operand& o) { operands.insert(o.argument); });
  for (const char* own : {spec::Gradients::kOfOutput, spec::Gradients::kOfLogSum})
    operands.insert(own);
  std::vector<std::string> out;
  for (const spec::Argument& a : form.arguments)
    if (a.is_tensor && is_float(a.dtype) && !a.saved && read.count(a.name) &&
        !operands.count(a.name))
      out.push_back(a.name);
  return out;
}

int64_t nearest_element(const Tensor& t, const std::vector<int64_t>& at) {
  int64_t offset = 0;
  for (size_t d = 0; d < at.size(); ++d)
    offset = offset * t.shape[d] + std::clamp<int64_t>(at[d], 0, t.shape[d] - 1);
  return offset;
}

spec::Scope scope_of(const Problem& problem) {
  spec::Scope scope;
  scope.indices = problem.sizes;
  scope.scalars = problem.scalars;
  scope.read = [&](const std::string& name, const std::vector<int64_t>& at) {
    const Tensor& t = problem.tensors.at(name);
    return t.values[nearest_element(t, at)];
  };
  return scope;
}

double evaluate_in_fp32(const ExprPtr& e, const spec::Scope& scope) {
  const auto own = std::make_shared<spec::Expr>(*e);
  for (ExprPtr& part : own->args) {
    const auto number = std::make_shared<spec::Expr>();
    number->kind = Kind::number;
    number->type = part->type;
    number->value = evaluate_in_fp32(part, scope);
    number->integer = part->type == spec::Type::real ? 0 : int64_t(number->value);
    part = number;
  }
  const double x = spec::evaluate(own, scope);
  return e->type == spec::Type::real ? double(static_cast<float>(x)) : x;
}

bool has_far_arguments(const Form& form) { return !further_arguments(form).empty(); }

bool plant_far(const Form& form, const Case& c, Problem& problem) {
  const double sign = c.planted == Planted::far_below ? -1 : 1;
  const std::set<std::string> divisors = divisors_of(form);
  bool any = false;
  for (const std::string& name : further_arguments(form)) {
    Tensor& t = problem.tensors.at(name);
    const Tensor before = t;
    bool fits = false;
    for (const Reach& reach : kReaches) {
      plant_elements(reach, sign, divisors.count(name), c.heads.at(0), t);
      if ((fits = stays_finite(form, c, problem))) break;
      t = before;
    }
    any |= fits;
  }
  return any;
}

}  // namespace kw::check
