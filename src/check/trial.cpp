// One run of a program on one case: faults, blocks that were left out, every output.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "check/family.h"
#include "check/packing.h"
#include "check/planted.h"
#include "operator/sums.h"

namespace kw::check {

using spec::Form;
using spec::Problem;

namespace {

double median(const Tensor& own_error) {
  std::vector<double> errors;
  for (double e : own_error.values)
    if (std::isfinite(e)) errors.push_back(e);
  if (errors.empty()) return 0;
  std::nth_element(errors.begin(), errors.begin() + errors.size() / 2, errors.end());
  return errors[errors.size() / 2];
}

// The user's own error on a row; of a case without goldens of its sizes, the median of the nearest.
class OwnError {
 public:
  explicit OwnError(const Case& c) : exact_(c.exact) {
    errors_.push_back(&c.golden->own_error);
    for (const spec::GoldenCase::Other& o : c.golden->others)
      errors_.push_back(o.own_error ? &*o.own_error : nullptr);
    if (!exact_)
      for (const Tensor* e : errors_) typical_.push_back(e ? median(*e) : 0);
  }
  // Of the n-th output; 0 where it is not known.
  double at(size_t n, int64_t b, int64_t h, int64_t row) const {
    if (n >= errors_.size() || !errors_[n]) return 0;
    if (!exact_) return typical_[n];
    const double e = errors_[n]->at({b, h, row});
    return std::isfinite(e) ? e : 0;
  }

 private:
  std::vector<const Tensor*> errors_;
  bool exact_;
  std::vector<double> typical_;
};

std::string said_of(const spec::Output& output, const spec::Accepted& a) {
  switch (output.rule) {
    case spec::Rule::row:
    case spec::Rule::row_sum:
      return fmt::format("relative error {:.2g} of a row, {:.2g} accepted", a.error, a.allowed);
    case spec::Rule::log_sum:
      return "the log of the sum of the exponentials differs";
    case spec::Rule::sum:
      return output.of.empty()
                 ? fmt::format("the sum of key {}'s weights over the rows differs", a.at)
                 : fmt::format("it is off by {:.2g}, {:.2g} accepted", a.error, a.allowed);
  }
  return {};
}

// The outputs of one run that the operator has, each row, and what has no rows head by head.
class Outputs {
 public:
  Outputs(const Form& form, const Problem& problem, const Case& c, const exec::Outcome& run,
          Trial& trial)
      : form_(form),
        outputs_(spec::outputs(form)),
        truth_(spec::truth(form, problem)),
        own_(c),
        case_(c),
        run_(run),
        trial_(trial) {}

  std::optional<Counterexample> check() {
    const int64_t H = static_cast<int64_t>(case_.heads.size());
    const auto heads = spec::heads_of(truth_->batches(), H, case_.key_heads,
                                      [&](int64_t h) { return ends_group(form_, case_, h); });
    for (const spec::HeadAt& at : heads) {
      truth_->begin_head();
      for (int64_t i = 0; i < truth_->rows(); ++i) {
        truth_->row(at.b, case_.heads[at.h], i);
        ++trial_.rows;
        if (auto e = check_row(at, i)) return e;
      }
      if (auto e = check_sums(at)) return e;
    }
    return std::nullopt;
  }

 private:
  std::optional<Counterexample> check_row(const spec::HeadAt& at, int64_t i) {
    for (size_t n = 0; n < outputs_.size(); ++n) {
      const spec::Held& held = truth_->of(n);
      if (!outputs_[n].has_rows() || held.unspecified) continue;
      const int64_t row = (at.b * at.H + at.h) * truth_->rows() + i;
      if (auto e = check(n, held, row, own_.at(n, at.b, case_.heads[at.h], i), at, i)) return e;
    }
    return std::nullopt;
  }

  // What has no rows, where this head completes it.
  std::optional<Counterexample> check_sums(const spec::HeadAt& at) {
    for (size_t n = 0; n < outputs_.size(); ++n) {
      if (outputs_[n].has_rows()) continue;
      const spec::Block block = spec::block_of(outputs_[n], at);
      const auto sum = sums_.add(n, block, truth_->of(n), spec::add_share);
      if (!sum || sum->unspecified) continue;
      const bool of_keys = outputs_[n].has('g');
      const int64_t rows = spec::rows_of(*sum);
      for (int64_t j = 0; j < rows; ++j) {
        const double own = of_keys ? own_.at(n, at.b, key_head_of(form_, case_, at.h), j) : 0;
        const spec::Held row = spec::row_of(*sum, j);
        if (auto e = check(n, row, block.number * rows + j, own, at, sum->length ? j : -1))
          return e;
      }
    }
    return std::nullopt;
  }

  // The `row`-th of an output's rows, which all have the length of what is held against this one.
  std::optional<Counterexample> check(size_t n, const spec::Held& held, int64_t row, double own,
                                      const spec::HeadAt& at, int64_t i) {
    const spec::Output& output = outputs_[n];
    const auto given = run_.outputs.find(output.name);
    if (given == run_.outputs.end()) return std::nullopt;
    const double* got = &given->second.values[row * int64_t(held.want.size())];
    const spec::Accepted a = spec::accept(output, held, got, own, form_.dtype);
    if (!a.right) return fails(output, held, got, a, at.b, at.h, i);
    const bool relative = output.rule == spec::Rule::row || output.rule == spec::Rule::row_sum;
    if (relative) trial_.worst = std::max(trial_.worst, a.error / a.allowed);
    return std::nullopt;
  }

  Counterexample fails(const spec::Output& output, const spec::Held& held, const double* got,
                       const spec::Accepted& a, int64_t b, int64_t h, int64_t i) const {
    Counterexample e = blame(case_, output.name, b, h, i);
    e.error = a.error;
    e.allowed = a.allowed;
    e.message = said_of(output, a);
    show_worst(e, got, held.want.data(), static_cast<int64_t>(held.want.size()));
    return e;
  }

  const Form& form_;
  const std::vector<spec::Output> outputs_;
  const std::unique_ptr<spec::Truth> truth_;
  const OwnError own_;
  const Case& case_;
  const exec::Outcome& run_;
  Trial& trial_;
  spec::Sums<spec::Held> sums_;
};

// The outputs that the function has must be there, as large as they are, and none that it cannot
// have.
std::string misfit(const Case& c, const Form& form, const exec::Outcome& run) {
  for (const auto& [name, tensor] : run.outputs)
    if (const std::string why = spec::Family::of(form).no_output(form, name); !why.empty())
      return fmt::format("the program has the output {}, and {}", name, why);
  for (const spec::Output& o : spec::outputs(form))
    if (o.returned && !run.outputs.count(o.name))
      return fmt::format("the function returns {}[{}], and the program has no output {}", o.name,
                         fmt::join(o.axes, ", "), o.name);
  std::map<char, int64_t> extents;
  for (const spec::Axis& a : spec::axes(form))
    if (!a.index.empty()) extents[a.index[0]] = spec::value_of(a.size, c.sizes);
  extents['h'] = static_cast<int64_t>(c.heads.size());
  extents['g'] = c.key_heads;
  for (const spec::Output& o : spec::outputs(form)) {
    const auto given = run.outputs.find(o.name);
    int64_t count = 1;
    extents['x'] = spec::value_of(o.own, c.sizes);
    for (const char index : o.axes) count *= extents.at(index);
    if (given != run.outputs.end() && given->second.count() != count)
      return fmt::format("the function's {} has {} elements in this case, and the program's {}",
                         o.name, count, given->second.count());
  }
  return {};
}

// Of each tensor of integers the least and the greatest.
std::map<std::string, std::pair<int64_t, int64_t>> integers_of(const Form& form,
                                                               const Problem& problem) {
  std::map<std::string, std::pair<int64_t, int64_t>> out;
  for (const spec::Argument& a : form.arguments) {
    if (is_float(a.dtype) || a.dtype == Dtype::boolean || !a.is_tensor) continue;
    const std::vector<double>& values = problem.tensors.at(a.name).values;
    if (values.empty()) continue;
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    out[a.name] = {int64_t(*low), int64_t(*high)};
  }
  return out;
}

// Faults that say that the program cannot be run at all, on any input.
bool is_invalid(const std::string& code) {
  for (const char* c : {"exec.launch", "exec.name", "exec.type", "exec.sketch"})
    if (code == c) return true;
  return false;
}

}  // namespace

void show_worst(Counterexample& e, const double* got, const double* want, int64_t length) {
  std::vector<int64_t> order(length);
  std::iota(order.begin(), order.end(), 0);
  auto off = [&](int64_t d) {
    const double x = std::fabs(got[d] - want[d]);
    return std::isnan(x) ? HUGE_VAL : x;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t x, int64_t y) { return off(x) > off(y); });
  order.resize(std::min<int64_t>(length, 4));
  for (int64_t d : order) {
    e.columns.push_back(d);
    e.got.push_back(got[d]);
    e.want.push_back(want[d]);
  }
}

Counterexample blame(const Case& c, const std::string& output, int64_t b, int64_t h, int64_t i) {
  Counterexample e;
  e.sizes = c.sizes;
  e.heads = int64_t(c.heads.size());
  e.key_heads = c.key_heads;
  e.output = output;
  e.b = b;
  e.h = c.heads[h];
  e.i = i;
  return e;
}

bool ran(const Case& c, const Form& form, const exec::Outcome& run, Trial& trial) {
  if (!run.faults.empty() && is_invalid(run.faults[0].code)) {
    trial.diagnostics.add(run.faults[0]);
    return false;
  }
  if (const std::string why = run.faults.empty() ? misfit(c, form, run) : ""; !why.empty()) {
    trial.diagnostics.error("check.binding", {}, why);
    return false;
  }
  trial.valid = true;
  if (run.faults.empty()) return true;
  Counterexample e = blame(c, run.faults[0].code, 0, 0, -1);
  e.message = run.faults[0].message;
  e.span = run.faults[0].span;
  trial.failure = Failure{std::move(e), run.faults[0]};
  return false;
}

namespace {

Trial run_trial(const tl::Program& program, const Form& form, const Case& c) {
  Trial trial;
  trial.valid = false;
  const std::optional<Problem> problem = problem_of(form, c, trial.diagnostics);
  if (!problem) return trial;
  trial.integers = integers_of(form, *problem);
  auto launch = bind(program, form, *problem, c, trial.diagnostics);
  if (!launch) return trial;
  launch->fused = c.fused;
  exec::Outcome run = exec::run(program, *launch);
  trial.ran = std::move(run.ran);
  unpack(c, spec::value_of(form.M, problem->sizes), run);
  if (!ran(c, form, run, trial)) return trial;
  std::optional<Counterexample> e =
      Family::of(form).coverage(form, *problem, c, run, trial.key_blocks);
  if (!e) e = Outputs(form, *problem, c, run, trial).check();
  if (e) trial.failure = Failure{std::move(*e), std::nullopt};
  return trial;
}

}  // namespace

Trial run_trial(const tl::Program& program, const spec::Capture& capture, const Case& c) {
  static std::mutex one_at_a_time;
  std::unique_lock<std::mutex> lock;
  const FewHeads few = few_heads(capture.form, c);
  if (elements_of(few) > kManyElements) lock = std::unique_lock(one_at_a_time);
  Trial trial = run_trial(program, few.form, few.c);
  if (trial.failure) {
    int64_t& h = trial.failure->what.h;
    const auto at = std::find(few.c.heads.begin(), few.c.heads.end(), h);
    if (at != few.c.heads.end()) h = c.heads[at - few.c.heads.begin()];
  }
  return trial;
}

}  // namespace kw::check
