// The exact reading's part of a check: cases, draws, the error probability, a refutation.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "check/family.h"
#include "check/made_small.h"
#include "check/packing.h"
#include "operator/evaluate/exact.h"
#include "support/threads.h"
#include "tl/laws/laws.h"

namespace kw::check {

namespace {

constexpr int kMostDraws = 8;
constexpr uint64_t kSeed = 20260312;

bool agrees(const Trial& t) { return t.valid && !t.failure; }

// What is drawn: a program, a function, and whether integers that become reals are.
struct Reading {
  const tl::Program& program;
  const spec::Capture& capture;
  double missed = 0;  // Options::missed
  bool general = false;

  Trial run(const Case& c, int draw) const {
    Trial t = run_exact_trial(program, capture, c, draw, general);
    t.draws = agrees(t) ? 1 : draw;
    return t;
  }
};

bool agree(const std::vector<Trial>& all) { return std::all_of(all.begin(), all.end(), agrees); }

// Adds one more draw to those of a case; one that fails is all that is of interest.
void add(Trial& all, Trial t) {
  if (!agrees(all)) return;
  if (!agrees(t)) {
    all = std::move(t);
    return;
  }
  all.error_bound *= t.error_bound;
  all.rows += t.rows;
  all.opaque |= t.opaque;
  all.ran.insert(t.ran.begin(), t.ran.end());
  all.draws += t.draws;
}

// The first draws of each case. Of a few cases more draws than one are made at once, by threads
// that had nothing to do: one is rarely enough.
std::vector<Trial> first_draws(const Reading& r, const std::vector<Case>& cases, int threads) {
  const size_t at_once = cases.empty() ? 1 : std::max<size_t>(size_t(threads) / cases.size(), 1);
  if (at_once == 1) return run_cases([&](const Case& c) { return r.run(c, 0); }, cases, threads);
  std::vector<Trial> all(cases.size() * at_once);
  each_on_threads(threads, all.size(),
                  [&](size_t n) { all[n] = r.run(cases[n / at_once], int(n % at_once)); });
  std::vector<Trial> trials;
  for (size_t n = 0; n < all.size(); ++n) {
    if (n % at_once == 0)
      trials.push_back(std::move(all[n]));
    else
      add(trials.back(), std::move(all[n]));
  }
  return trials;
}

// Draws every case until a difference would have been missed with the probability allowed at most.
// Draws are independent: their probabilities multiply, and several threads make them.
void draw_further(const Reading& r, const std::vector<Case>& cases, int threads,
                  std::vector<Trial>& trials) {
  struct Further {
    size_t of;
    int draw;
    Trial trial;
  };
  while (agree(trials)) {
    std::vector<Further> further;
    for (size_t n = 0; n < cases.size(); ++n) {
      const Trial& t = trials[n];
      if (t.error_bound <= r.missed) continue;
      const double one = std::pow(t.error_bound, 1.0 / t.draws);  // of a draw
      const int all = one < 1 ? int(std::ceil(std::log(r.missed) / std::log(one))) : kMostDraws;
      for (int d = t.draws; d < std::min(std::max(all, t.draws + 1), kMostDraws); ++d)
        further.push_back({n, d, {}});
    }
    if (further.empty()) return;
    each_on_threads(threads, further.size(), [&](size_t n) {
      further[n].trial = r.run(cases[further[n].of], further[n].draw);
    });
    for (Further& f : further) add(trials[f.of], std::move(f.trial));
  }
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
  else if (Family::of(capture.form).can_locate(program, capture.form, failure.what.output))
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
  const bool parts = program.find(tl::Op::combine_parts) != nullptr;
  std::vector<Case> cases = make_exact_cases(capture, options, parts);
  keep_to_limits(capture.form, report.indices, options.scores, cases);
  for (Case& c : cases) c.packed = packs_heads(program);
  return cases;
}

// The function and the program with these numbers small in both, of integers that are drawn as data
// are; nothing where they are then not one formula.
std::vector<Trial> draw_integers(const Reading& of, const std::vector<int64_t>& numbers,
                                 const std::vector<Case>& cases, int threads) {
  spec::Capture capture = of.capture;
  capture.form = with_drawn_integers(made_small(std::move(capture.form), numbers, kSeed));
  tl::Program program = made_small(of.program, numbers, kSeed);
  Diagnostics unused;
  if (!tl::verify(program, unused)) return {};
  program = with_drawn_integers(std::move(program));
  const Reading reading{program, capture, of.missed, true};
  std::vector<Trial> trials = first_draws(reading, cases, threads);
  draw_further(reading, cases, threads, trials);
  if (!agree(trials)) return {};
  for (Trial& t : trials) t.ran.clear();  // statements of another program
  return trials;
}

// What integers in general position show, beside the function's own numbers and with these small.
struct General {
  std::vector<Trial> trials;  // of the former, where they agree
  bool holds = false;
  std::vector<int64_t> made_small;
  std::string apart;  // see ExactReport
};

bool asks_for_integers(const spec::Form& form, const Report& report) {
  return report.indices && report.indices->complete() &&
         (!numbers_of_scores(form).empty() || has_integers_in_reals(form));
}

// Of the integers that become reals cases have few: another formula might agree on these
// (made_small.h).
General check_integers(const Reading& plain, const std::vector<Case>& cases, int threads) {
  const std::vector<int64_t> numbers = numbers_of_scores(plain.capture.form);
  General out;
  const auto agree = [&](const std::vector<int64_t>& some) {
    std::vector<Trial> trials = draw_integers(plain, some, cases, threads);
    const bool agree = !trials.empty();
    if (some.empty()) out.trials = std::move(trials);
    return agree;
  };
  const bool all = agree(numbers);
  out.holds = all || (!numbers.empty() && agree({}));
  if (!out.holds) out.apart = "integers drawn as data are";
  for (const int64_t number : numbers) {
    if (!out.holds) break;
    if (all || (numbers.size() > 1 && agree({number})))
      out.made_small.push_back(number);
    else if (out.apart.empty())
      out.apart = fmt::format("{} made small in both", number);
  }
  return out;
}

// A draw of each case, and as many more as are needed. Formulas that are one of any integers are
// one of those that a case has, or one of them is none there (0 / 0), which shows in every draw:
// after one draw of each case those of integers in general position take the place of others. Both
// run side by side: nearly always both are needed.
std::vector<Trial> run_draws(const Reading& plain, const std::vector<Case>& cases, int threads,
                             Report& report) {
  if (!asks_for_integers(plain.capture.form, report)) {
    std::vector<Trial> trials = first_draws(plain, cases, threads);
    draw_further(plain, cases, threads, trials);
    return trials;
  }
  std::vector<Trial> trials;
  General general;
  each_on_threads(threads, 2, [&](size_t which) {
    if (which == 0)
      trials = first_draws(plain, cases, 1);
    else
      general = check_integers(plain, cases, threads);
  });
  if (!agree(trials)) return trials;
  report.exact.general = general.holds;
  report.exact.apart = general.apart;
  for (const int64_t number : general.made_small) std::erase(report.unreached, number);
  report.exact.made_small = std::move(general.made_small);
  for (size_t n = 0; n < general.trials.size(); ++n) {
    trials[n].error_bound = 1;
    add(trials[n], general.trials[n]);
  }
  draw_further(plain, cases, threads, trials);
  return trials;
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
      run_draws({program, capture, options.missed}, cases, std::max(options.threads, 1), report);
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
  exact.opaque = exact::opaque_names(opaque);
  exact.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace kw::check
