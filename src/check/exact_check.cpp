// The exact reading's part of a check: cases, draws, the error probability, a refutation.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "check/family.h"
#include "check/made_small.h"
#include "check/packing.h"
#include "operator/evaluate/exact.h"
#include "tl/laws/laws.h"

namespace kw::check {

namespace {

constexpr int kMostDraws = 8;
constexpr uint64_t kSeed = 20260312;
const double kWanted = std::exp2(-100);

// Draws a case until a difference would have been missed with probability 2^-100 at most. Draws are
// independent, so their probabilities multiply.
Trial run_draws(const tl::Program& program, const spec::Capture& capture, const Case& c,
                bool general = false) {
  Trial all;
  all.error_bound = 1;
  for (int draw = 0; draw < kMostDraws && all.error_bound > kWanted; ++draw) {
    Trial t = run_exact_trial(program, capture, c, draw, general);
    t.draws = draw;
    if (!t.valid || t.failure) return t;
    all.error_bound *= t.error_bound;
    all.rows += t.rows;
    all.opaque |= t.opaque;
    all.ran.insert(t.ran.begin(), t.ran.end());
    ++all.draws;
  }
  return all;
}

void refute(const tl::Program& program, const spec::Capture& capture, const Options& options,
            Case c, int draw, Failure failure, Report& report) {
  // A difference that is certain stays so; another failure may not take its place.
  const bool certain = failure.opaque == 0;
  const RunCase run = [&](const Case& smaller) {
    Trial t = run_exact_trial(program, capture, smaller, draw);
    if (t.failure && certain != (t.failure->opaque == 0)) t.failure.reset();
    return t;
  };
  if (options.shrink) std::tie(c, failure) = shrink(run, capture, c, std::move(failure));
  report.verdict = certain ? Verdict::refuted : Verdict::inconclusive;
  if (failure.fault)
    report.diagnostics.add(*failure.fault);
  else if (Family::of(capture.form).can_locate(capture.form, failure.what.output))
    locate_exact(program, capture, c, draw, failure.what);
  if (!certain) {
    Diagnostic& d = report.diagnostics.error(
        "check.opaque", failure.what.span,
        fmt::format(
            "the results differ in the exact reading and depend on what it knows too little "
            "about: {}",
            exact::opaque_names(failure.opaque)));
    d.hint = "write the operation as the specification does, on the same operands";
  }
  report.counterexample = std::move(failure.what);
}

std::vector<Case> cases_of(const tl::Program& program, const spec::Capture& capture,
                           const Options& options, const Report& report) {
  std::vector<Case> cases = make_exact_cases(capture, options);
  keep_to_limits(capture.form, report.indices, options.scores, cases);
  for (Case& c : cases) c.packed = packs_heads(program);
  return cases;
}

// Whether the function and the program are one formula with these numbers small in both, of
// integers that are drawn as data are.
bool agree_made_small(const tl::Program& program, const spec::Capture& capture,
                      const std::vector<int64_t>& numbers, const Options& options,
                      const Report& report) {
  spec::Capture small = capture;
  small.form = with_drawn_integers(made_small(capture.form, numbers, kSeed));
  tl::Program other = made_small(program, numbers, kSeed);
  Diagnostics unused;
  if (!tl::verify(other, unused)) return false;
  other = with_drawn_integers(std::move(other));
  const std::vector<Trial> trials =
      run_cases([&](const Case& c) { return run_draws(other, small, c, true); },
                cases_of(program, capture, options, report), std::max(options.threads, 1));
  return std::all_of(trials.begin(), trials.end(),
                     [](const Trial& t) { return t.valid && !t.failure; });
}

// Of the integers that become reals cases have few: another formula might agree on these
// (made_small.h).
void check_integers(const tl::Program& program, const spec::Capture& capture,
                    const Options& options, Report& report) {
  if (!report.indices || !report.indices->complete()) return;
  ExactReport& exact = report.exact;
  const std::vector<int64_t> numbers = numbers_of_scores(capture.form);
  if (numbers.empty() && !has_integers_in_reals(capture.form)) return;
  const auto agree = [&](const std::vector<int64_t>& some) {
    return agree_made_small(program, capture, some, options, report);
  };
  const bool all = agree(numbers);
  exact.general = all || (!numbers.empty() && agree({}));
  if (!exact.general) exact.apart = "integers drawn as data are";
  for (const int64_t number : numbers) {
    if (!exact.general) break;
    if (all || (numbers.size() > 1 && agree({number}))) {
      exact.made_small.push_back(number);
      std::erase(report.unreached, number);
    } else if (exact.apart.empty()) {
      exact.apart = fmt::format("{} made small in both", number);
    }
  }
}

}  // namespace

void check_exact(const tl::Program& program, const spec::Capture& capture, const Options& options,
                 Report& report) {
  const auto start = std::chrono::steady_clock::now();
  ExactReport& exact = report.exact;
  if (const auto why = spec::not_exact(capture.form)) {
    exact.not_run = *why;
    return;
  }
  const std::vector<Case> cases = cases_of(program, capture, options, report);
  std::vector<Trial> trials =
      run_cases([&](const Case& c) { return run_draws(program, capture, c); }, cases,
                std::max(options.threads, 1));
  exact.ran = true;
  exact.error_bound = 0;
  uint8_t opaque = 0;
  for (size_t n = 0; n < trials.size(); ++n) {
    Trial& t = trials[n];
    if (!t.valid) {
      report.verdict = Verdict::invalid;
      report.diagnostics = std::move(t.diagnostics);
      break;
    }
    ++exact.cases;
    exact.shapes.push_back(describe(cases[n]));
    exact.runs += t.draws + (t.failure ? 1 : 0);
    exact.rows += t.rows;
    exact.error_bound = std::max(exact.error_bound, t.error_bound);
    opaque |= t.opaque;
    report.ran.insert(t.ran.begin(), t.ran.end());
    if (!t.failure) continue;
    refute(program, capture, options, cases[n], t.draws, std::move(*t.failure), report);
    break;
  }
  if (report.verdict == Verdict::holds) check_integers(program, capture, options, report);
  exact.opaque = exact::opaque_names(opaque);
  exact.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace kw::check
