// One run of a program on one case: faults, key blocks, every row of every output.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "check/packing.h"
#include "num/compare.h"

namespace kw::check {

using spec::Form;
using spec::Problem;

namespace {

// The user's own error on a row; of a case without goldens of its sizes, the median of the nearest.
class OwnError {
 public:
  explicit OwnError(const Case& c) : golden_(*c.golden), exact_(c.exact) {
    if (!exact_) typical_ = median_own_error(golden_);
  }
  double at(int64_t b, int64_t h, int64_t i) const {
    if (!exact_) return typical_;
    const double e = golden_.own_error.at({b, h, i});
    return std::isfinite(e) ? e : 0;
  }

 private:
  const spec::GoldenCase& golden_;
  bool exact_;
  double typical_ = 0;
};

// `rounding` is what changed rows of q and k may add.
bool lse_agrees(double got, double want, double rounding) {
  if (std::isinf(want) || std::isnan(want)) return got == want;
  return std::fabs(got - want) <= 1e-4 + 1e-5 * std::fabs(want) + rounding;
}

struct Truths {
  const Form& form;
  spec::Evaluator& evaluator;
  const OwnError& own;
};

// One row of the output and its log-sum; the failure, if it is one.
std::optional<Counterexample> check_row(const Truths& truth, const Case& c,
                                        const exec::Outcome& run, int64_t b, int64_t h, int64_t i,
                                        Trial& trial) {
  const Tensor& o = run.outputs.at("o");
  const int64_t Dv = o.shape[3];
  std::vector<double> want(Dv);
  const double lse = truth.evaluator.row(b, c.heads[h], i, want.data());
  const double* got = &o.values[((b * o.shape[1] + h) * o.shape[2] + i) * Dv];
  // The user's own error is of rows that are alike; of what changed rows add here the deviation is
  // known.
  const double allowed = accepted_error(truth.own.at(b, c.heads[h], i), truth.form.dtype) +
                         spec::kDeviations * truth.evaluator.output_deviation();
  const double error = row_error(got, want.data(), Dv, least_norm(truth.form.dtype, Dv));
  ++trial.rows;
  if (!(error <= allowed)) {
    Counterexample e = blame(c, "o", b, h, i);
    e.error = error;
    e.allowed = allowed;
    e.message = fmt::format("relative error {:.2g} of a row, {:.2g} accepted", error, allowed);
    show_worst(e, got, want.data(), Dv);
    return e;
  }
  trial.worst = std::max(trial.worst, error / allowed);
  const auto row_lse = run.outputs.find("lse");
  const bool uniform = lse == -HUGE_VAL && truth.form.terms[0].finite_mask;
  if (row_lse == run.outputs.end() || uniform) return std::nullopt;
  const double got_lse = row_lse->second.values[(b * o.shape[1] + h) * o.shape[2] + i];
  const double rounding = spec::kDeviations * truth.evaluator.lse_deviation();
  if (lse_agrees(got_lse, lse, rounding)) return std::nullopt;
  Counterexample e = blame(c, "lse", b, h, i);
  e.error = std::fabs(got_lse - lse);
  e.allowed = 1e-4 + 1e-5 * std::fabs(lse) + rounding;
  e.message = "the log of the sum of the exponentials differs";
  show_worst(e, &got_lse, &lse, 1);
  return e;
}

// The sums of each key's weights over the rows of one head. A weight is off by what its row's
// log-sum may be off (lse_agrees), and half an ulp of 1 in fp32 is lost where it is added.
class ColumnSums {
 public:
  explicit ColumnSums(const spec::Evaluator& evaluator)
      : evaluator_(evaluator), sums_(evaluator.keys()), allowed_(evaluator.keys()) {}

  // Of the row that was evaluated last.
  void add() {
    const double total = evaluator_.weights_sum();
    if (total == 0) return;
    const double lse = std::isfinite(evaluator_.lse()) ? evaluator_.lse() : 0;
    const double off =
        std::expm1(1e-4 + 1e-5 * std::fabs(lse) + spec::kDeviations * evaluator_.lse_deviation());
    for (size_t j = 0; j < sums_.size(); ++j) {
      const double weight = evaluator_.weights()[j] / total;
      sums_[j] += weight;
      allowed_[j] += weight * off + std::ldexp(1.0, -24);
    }
  }

  std::optional<Counterexample> check(const Case& c, const exec::Outcome& run, int64_t b,
                                      int64_t h) const {
    const Tensor& got = run.outputs.at(kColumnSums);
    const int64_t N = evaluator_.keys();
    const double* of_head = &got.values[(b * int64_t(c.heads.size()) + h) * N];
    for (int64_t j = 0; j < N; ++j) {
      const double error = std::fabs(of_head[j] - sums_[j]);
      if (error <= allowed_[j]) continue;
      Counterexample e = blame(c, kColumnSums, b, h, -1);
      e.error = error;
      e.allowed = allowed_[j];
      e.message = fmt::format("the sum of key {}'s weights over the rows differs", j);
      show_worst(e, of_head, sums_.data(), N);
      return e;
    }
    return std::nullopt;
  }

 private:
  const spec::Evaluator& evaluator_;
  std::vector<double> sums_, allowed_;
};

std::optional<Counterexample> check_rows(const Form& form, const Problem& problem, const Case& c,
                                         const exec::Outcome& run, Trial& trial) {
  const OwnError own(c);
  spec::Evaluator evaluator(form, problem);
  const Truths truth{form, evaluator, own};
  for (int64_t b = 0; b < evaluator.batches(); ++b)
    for (int64_t h = 0; h < int64_t(c.heads.size()); ++h) {
      ColumnSums sums(evaluator);
      for (int64_t i = 0; i < evaluator.queries(); ++i) {
        if (auto e = check_row(truth, c, run, b, h, i, trial)) return e;
        sums.add();
      }
      if (!form.returns_column_sums) continue;
      if (auto e = sums.check(c, run, b, h)) return e;
    }
  return std::nullopt;
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

double median_own_error(const spec::GoldenCase& golden) {
  std::vector<double> errors;
  for (double e : golden.own_error.values)
    if (std::isfinite(e)) errors.push_back(e);
  if (errors.empty()) return 0;
  std::nth_element(errors.begin(), errors.begin() + errors.size() / 2, errors.end());
  return errors[errors.size() / 2];
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
  const size_t terms = form.terms.size();
  if (!run.faults.empty() && is_invalid(run.faults[0].code)) {
    trial.diagnostics.add(run.faults[0]);
    return false;
  }
  if (run.faults.empty() && terms > 1 && run.outputs.count("lse")) {
    trial.diagnostics.error("check.binding", {},
                            "the program gives lse, and the sum of several terms has no "
                            "log-sum-exp: leave the argument out");
    return false;
  }
  if (run.faults.empty() && terms > 0 && !run.outputs.count("o")) {
    trial.diagnostics.error("check.binding", {}, "the program has no output o");
    return false;
  }
  if (run.faults.empty() && form.returns_column_sums && !run.outputs.count(kColumnSums)) {
    trial.diagnostics.error(
        "check.binding", {},
        fmt::format("the function returns the sums of its weights' columns, and the program has no "
                    "output {}",
                    kColumnSums));
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

Trial run_trial(const tl::Program& program, const spec::Capture& capture, const Case& c) {
  Trial trial;
  trial.valid = false;
  const Form& form = capture.form;
  const std::optional<Problem> problem =
      spec::make_problem(form, c.sizes, c.draws, trial.diagnostics);
  if (!problem) return trial;
  const auto launch = bind(program, form, *problem, c, trial.diagnostics);
  if (!launch) return trial;
  exec::Outcome run = exec::run(program, *launch);
  unpack(c, spec::value_of(form.M, problem->sizes), run);
  if (!ran(c, form, run, trial)) return trial;
  if (form.product) {
    judge_product(form, *problem, c, run, trial);
    return trial;
  }
  std::optional<Counterexample> e = check_blocks(form, *problem, c, run.visits, trial.key_blocks);
  if (!e) e = check_rows(form, *problem, c, run, trial);
  if (e) trial.failure = Failure{std::move(*e), std::nullopt};
  return trial;
}

}  // namespace kw::check
