#include "check/planted.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "check/family.h"
#include "num/random.h"
#include "operator/family.h"

namespace kw::check {
namespace {

constexpr Planted kAll[] = {Planted::bits,  Planted::zeros, Planted::equal,
                            Planted::spike, Planted::tiny,  Planted::below};

double planted(Planted what, double drawn, const Random& random, uint64_t n) {
  switch (what) {
    case Planted::bits:
      return double(random.integer(n, 0, 1));
    case Planted::spike:
      return random.integer(n, 0, 63) == 0 ? drawn * 16 : drawn / 16;
    case Planted::tiny:  // below the least normal number of fp16, and of bf16 as a product of two
      return drawn * 0x1p-20;
    case Planted::small:
      return drawn * 0x1p-10;
    case Planted::large:
      return drawn * 0x1p40;
    default:
      return drawn;
  }
}

// Along the last dimension: every second row 0, or all rows the first.
void plant_rows(Planted what, Tensor& t) {
  const int64_t columns = t.shape.empty() ? 1 : t.shape.back();
  const bool rows = t.shape.size() > 1;
  const int64_t of_a_head = rows ? t.shape[t.shape.size() - 2] : 1;
  for (size_t n = 0; n < t.values.size(); ++n) {
    const int64_t row = int64_t(n) / columns;
    if (what == Planted::zeros && (!rows || row % 2 == 1)) t.values[n] = 0;
    if (what == Planted::equal && rows)
      t.values[n] = t.values[row / of_a_head * of_a_head * columns + int64_t(n) % columns];
  }
}

double mean_size(const Tensor& t) {
  double sum = 0;
  for (const double x : t.values) sum += std::abs(x);
  return sum / double(std::max<size_t>(t.values.size(), 1));
}

// Queries of negative numbers and keys of positive ones: with a scale of 1 / sqrt(D) a row's scores
// are some -175. What is neither or both stays as drawn.
void plant_below(const spec::Form& form, spec::Problem& problem) {
  std::map<std::string, double> factors;
  std::set<std::string> keys;
  for (const spec::Term& t : form.terms) {
    const auto away = [&](const spec::Operand& q, const spec::Operand& k, int64_t D) {
      const double drawn = mean_size(problem.tensors.at(q.argument)) *
                           mean_size(problem.tensors.at(k.argument)) * std::sqrt(double(D));
      factors[q.argument] = -175 / (drawn * double(1 + t.more.size()));
      keys.insert(k.argument);
    };
    away(t.q, t.k, form.D.constant);
    for (const spec::FurtherProduct& m : t.more) away(m.q, m.k, m.D);
  }
  for (const auto& [name, factor] : factors) {
    Tensor& t = problem.tensors.at(name);
    if (!keys.count(name))
      for (double& x : t.values) x = drawn(t.dtype, std::abs(x) * factor);
  }
  for (const std::string& name : keys)
    for (double& x : problem.tensors.at(name).values) x = std::abs(x);
}

// Whether the first row that has a key is one whose weights, of a score of 0, are beyond fp32.
bool lies_below(const spec::Form& form, const Case& c) {
  Diagnostics ignored;
  const auto problem = problem_of(form, c, ignored);
  if (!problem) return false;
  spec::Evaluator evaluator(form, *problem);
  std::vector<double> output(evaluator.value_dim());
  for (int64_t i = 0; i < evaluator.queries(); ++i) {
    const double lse = evaluator.row(0, c.heads[0], i, output.data());
    if (std::isfinite(lse)) return lse < -100 && lse > -2000;
  }
  return false;
}

bool all_softmax(const spec::Form& form) {
  return !form.terms.empty() &&
         std::all_of(form.terms.begin(), form.terms.end(),
                     [](const auto& t) { return t.normaliser == spec::Normaliser::softmax; });
}

void add_reads(const spec::ExprPtr& e, std::set<std::string>& out) {
  if (e->kind == spec::Kind::read || e->kind == spec::Kind::argument) out.insert(e->name);
  for (const spec::ExprPtr& a : e->args) add_reads(a, out);
}

void add_divisors(const spec::ExprPtr& e, std::set<std::string>& out) {
  if (e->kind == spec::Kind::binary && e->name == "/") add_reads(e->args[1], out);
  if (e->kind == spec::Kind::unary &&
      (e->name == "reciprocal" || e->name == "rsqrt" || e->name == "log"))
    add_reads(e->args[0], out);
  for (const spec::ExprPtr& a : e->args) add_divisors(a, out);
}

// What the function divides by or takes the logarithm of: with zeros in it PyTorch's result is
// infinite or NaN too, and says nothing.
std::set<std::string> divisors(const spec::Form& form) {
  std::set<std::string> out;
  spec::Form copy = form;
  spec::Family::of(form).each_expression(
      copy, [&](spec::ExprPtr& e, const spec::Extents&) { add_divisors(e, out); });
  return out;
}

void plant(Planted what, uint64_t seed, const spec::Form& form, spec::Problem& problem) {
  if (what == Planted::none) return;
  if (what == Planted::below) {
    plant_below(form, problem);
    return spec::Family::of(form).complete(form, problem);
  }
  const Random random(seed, 77);
  const std::set<std::string> kept = divisors(form);
  uint64_t n = 0;
  for (const spec::Argument& a : form.arguments) {
    if (!is_float(a.dtype) || a.saved || kept.count(a.name)) continue;
    if (!a.is_tensor) {
      // A difference of terms weighted 1 is 0 in the reference, and rounding in every kernel.
      if (what == Planted::bits && form.terms.size() < 2) problem.scalars.at(a.name) = 1;
      continue;
    }
    Tensor& t = problem.tensors.at(a.name);
    if (what == Planted::zeros || what == Planted::equal)
      plant_rows(what, t);
    else
      for (double& value : t.values) value = drawn(t.dtype, planted(what, value, random, n++));
  }
  spec::Family::of(form).complete(form, problem);
}

}  // namespace

std::optional<spec::Problem> problem_of(const spec::Form& form, const Case& c,
                                        Diagnostics& diagnostics) {
  std::optional<spec::Problem> problem = spec::make_problem(form, c.sizes, c.draws, diagnostics);
  if (problem) plant(c.planted, c.draws.seed, form, *problem);
  return problem;
}

std::vector<Case> planted_cases(const spec::Capture& capture, const Options& options) {
  constexpr uint64_t kSalt = 40000;
  std::vector<Case> cases;
  if (capture.cases.empty()) return cases;
  std::vector<Planted> all(std::begin(kAll), std::end(kAll));
  for (const Planted what : Family::of(capture.form).further_planted(capture.form))
    all.push_back(what);
  for (const Planted what : all) {
    if (options.effort == Effort::quick && cases.size() == 2 && what != Planted::below) continue;
    if (what == Planted::below && !all_softmax(capture.form)) continue;
    // What is rounded between is accepted as the deviation of numbers that differ: of ones and
    // zeros, all that are alike are rounded alike.
    if (what == Planted::bits && Family::of(capture.form).rounds_between(capture.form)) continue;
    // More queries than keys: of causal attention, too, some then see keys past the end.
    const auto [m, n] = what == Planted::below ? std::pair(200, 150) : std::pair(150, 200);
    Case c = case_of(capture, 1, m, n, kSalt + cases.size() + (options.rehearsal << 20));
    choose_heads(capture.form, c, false);
    c.planted = what;
    if (what == Planted::below && !lies_below(capture.form, c)) continue;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace kw::check
