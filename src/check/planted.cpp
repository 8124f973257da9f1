#include "check/planted.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "check/compared_numbers.h"
#include "check/family.h"
#include "check/far_arguments.h"
#include "check/far_scores.h"
#include "check/spread.h"
#include "num/random.h"
#include "operator/family.h"

namespace kw::check {
namespace {

constexpr Planted kAll[] = {
    Planted::bits,      Planted::zeros,     Planted::equal,   Planted::spike, Planted::tiny,
    Planted::below,     Planted::above,     Planted::spread,  Planted::alike, Planted::runs,
    Planted::far_below, Planted::far_above, Planted::compared};

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

// Along the last dimension: every second row 0, or every third, of the nth tensor others than of
// the ones before it (where a score is 0 its value is not, nor the gradient of its row); or all
// rows the first.
void plant_rows(Planted what, size_t nth, Tensor& t) {
  const int64_t columns = t.shape.empty() ? 1 : t.shape.back();
  const bool rows = t.shape.size() > 1;
  const int64_t of_a_head = rows ? t.shape[t.shape.size() - 2] : 1;
  const int64_t every = nth % 4 < 2 ? 2 : 3, which = nth % 2 ? 0 : 1;
  for (size_t n = 0; n < t.values.size(); ++n) {
    const int64_t row = int64_t(n) / columns;
    if (what == Planted::zeros && (!rows || row % every == which)) t.values[n] = 0;
    if (what == Planted::equal && rows)
      t.values[n] = t.values[row / of_a_head * of_a_head * columns + int64_t(n) % columns];
  }
}

void add_divisors(const spec::ExprPtr& e, std::set<std::string>& out) {
  if (e->kind == spec::Kind::binary && e->name == "/") add_reads(e->args[1], out);
  if (e->kind == spec::Kind::unary &&
      (e->name == "reciprocal" || e->name == "rsqrt" || e->name == "log"))
    add_reads(e->args[0], out);
  for (const spec::ExprPtr& a : e->args) add_divisors(a, out);
}

// Each element of the integers' tensors the greatest of its own: all of one document, no list with
// a block that needs a mask for it.
void plant_alike(Tensor& t) {
  std::fill(t.values.begin(), t.values.end(), *std::max_element(t.values.begin(), t.values.end()));
}

// The least of its own and the greatest in turn, along the last dimension: a document that goes on
// behind another, lists of blocks with a gap and without a mask.
void plant_runs(Tensor& t) {
  constexpr size_t kRun = 320;  // of any tile of keys, whole ones and some between
  const auto [least, greatest] = std::minmax_element(t.values.begin(), t.values.end());
  const double of_run[] = {*least, *greatest};
  for (size_t n = 0; n < t.values.size(); ++n)
    t.values[n] = of_run[n % size_t(t.shape.back()) / kRun % 2];
}

void plant_integers(const spec::Form& form, void (*plant)(Tensor&), spec::Problem& problem) {
  for (const spec::Argument& a : form.arguments) {
    if (!is_data_of_integers(a)) continue;
    if (Tensor& t = problem.tensors.at(a.name); !t.values.empty()) plant(t);
  }
}

// Whether the values say anything of the function.
bool applies(Planted what, const spec::Form& form) {
  switch (what) {
    case Planted::bits:
      // What is rounded between is accepted as the deviation of numbers that differ: of ones and
      // zeros, all that are alike are rounded alike.
      return !Family::of(form).rounds_between(form);
    case Planted::below:
      return all_softmax(form);
    case Planted::above:
      return all_softmax(form) && has_drawn_sinks(form);
    case Planted::spread:
      return has_spread(form);
    case Planted::alike:
    case Planted::runs:
      return std::any_of(form.arguments.begin(), form.arguments.end(), is_data_of_integers);
    case Planted::far_below:
    case Planted::far_above:
      return has_far_arguments(form);
    case Planted::compared:
      return has_compared_numbers(form);
    default:
      return true;
  }
}

struct Shape {
  int64_t b, m, n;
};

Shape shape_for(Planted what, const spec::Form& form) {
  // More queries than keys: of causal attention, too, some then see keys past the end.
  if (what == Planted::below) return {1, 200, 150};
  if (what == Planted::alike) return {1, 300, 520};
  if (what == Planted::runs) return {1, 1000, 1000};
  if (what != Planted::spread) return {1, 150, 200};
  // Of one query a batch entry has few rows of integers, and many keys are little work.
  const bool single = form.M.name.empty() && form.M.constant == 1;
  return single ? Shape{8, 1, 1300} : Shape{1, 150, 520};
}

// Numbers that are made for the form; false where all are to be changed alike.
bool plant_for_form(const Case& c, const spec::Form& form, spec::Problem& problem) {
  switch (c.planted) {
    case Planted::below:
      plant_below(form, problem);
      return true;
    case Planted::above:
      plant_above(form, problem);
      return true;
    case Planted::spread:
      plant_spread(c.draws.seed, form, problem);
      return true;
    case Planted::compared:
      plant_compared_numbers(c.draws.seed, form, problem);
      return true;
    case Planted::alike:
      plant_integers(form, plant_alike, problem);
      return true;
    case Planted::runs:
      plant_integers(form, plant_runs, problem);
      return true;
    case Planted::far_below:
    case Planted::far_above:
      plant_far(form, c, problem);
      return true;
    case Planted::balanced:
    case Planted::reach:
    case Planted::products:
    case Planted::ends:
      Family::of(form).plant(c.planted, form, problem);
      return true;
    default:
      return false;
  }
}

void plant(const Case& c, const spec::Form& form, spec::Problem& problem) {
  const Planted what = c.planted;
  if (what == Planted::none) return;
  if (plant_for_form(c, form, problem)) return spec::Family::of(form).complete(form, problem);
  const Random random(c.draws.seed, 77);
  const std::set<std::string> kept = divisors_of(form);
  uint64_t n = 0;
  size_t nth = 0;
  for (const spec::Argument& a : form.arguments) {
    if (!is_float(a.dtype) || a.saved || kept.count(a.name)) continue;
    if (!a.is_tensor) {
      // A difference of terms weighted 1 is 0 in the reference, and rounding in every kernel.
      if (what == Planted::bits && form.terms.size() < 2) problem.scalars.at(a.name) = 1;
      continue;
    }
    Tensor& t = problem.tensors.at(a.name);
    if (what == Planted::zeros || what == Planted::equal)
      plant_rows(what, nth++, t);
    else
      for (double& value : t.values) value = drawn(t.dtype, planted(what, value, random, n++));
  }
  spec::Family::of(form).complete(form, problem);
}

// Whether the function can do what is planted, where that is asked of it.
bool can_be(const spec::Form& form, const Case& c) {
  const bool far = c.planted == Planted::far_below || c.planted == Planted::far_above;
  if (!far && c.planted != Planted::products) return true;
  Diagnostics ignored;
  std::optional<spec::Problem> problem = spec::make_problem(form, c.sizes, c.draws, ignored);
  if (!problem) return false;
  return far ? plant_far(form, c, *problem) : Family::of(form).plant(c.planted, form, *problem);
}

}  // namespace

bool is_data_of_integers(const spec::Argument& a) { return a.is_tensor && !is_float(a.dtype); }

double mean_size(const Tensor& t) {
  double sum = 0;
  size_t count = 0;
  for (const double x : t.values) {
    sum += std::fabs(x);
    count += x != 0;
  }
  return sum / double(std::max<size_t>(count, 1));
}

void add_reads(const spec::ExprPtr& e, std::set<std::string>& out) {
  if (!e) return;
  if (e->kind == spec::Kind::read || e->kind == spec::Kind::argument) out.insert(e->name);
  for (const spec::ExprPtr& a : e->args) add_reads(a, out);
}

std::set<std::string> divisors_of(const spec::Form& form) {
  std::set<std::string> out;
  spec::Form copy = form;
  spec::Family::of(form).each_expression(
      copy, [&](spec::ExprPtr& e, const spec::Extents&) { add_divisors(e, out); });
  return out;
}

std::optional<spec::Problem> problem_of(const spec::Form& form, const Case& c,
                                        Diagnostics& diagnostics) {
  std::optional<spec::Problem> problem =
      spec::make_problem(form, c.sizes, c.draws, diagnostics, &c.heads);
  if (problem) plant(c, form, *problem);
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
    if (options.effort == Effort::quick && cases.size() == 2 && what != Planted::below &&
        what != Planted::compared)
      continue;
    if (!applies(what, capture.form)) continue;
    const auto [b, m, n] = shape_for(what, capture.form);
    Case c = case_of(capture, b, m, n, kSalt + cases.size() + (options.rehearsal << 20));
    choose_heads(capture.form, c, false);
    if (what == Planted::runs) keep_one_head(capture.form, c);
    c.planted = what;
    if (what == Planted::below && !lies_below(capture.form, c)) continue;
    if (!can_be(capture.form, c)) continue;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace kw::check
