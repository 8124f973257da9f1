// The order of a check: can it be decided at all, is the oracle sound, then the cases, then the
// smallest counterexample.
//
// Cases run on a few threads. The verdict is that of the first failing case in their order, so that
// it does not depend on which thread was faster.
#include "check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "check/equalities.h"
#include "check/family.h"
#include "check/far_scores.h"
#include "check/packing.h"
#include "check/planted.h"
#include "check/turning_points.h"
#include "check/unseen.h"
#include "support/threads.h"
#include "tl/laws/laws.h"
#include "tl/traits.h"

namespace kw::check {

// Runs the cases; later ones than a failure need not run.
std::vector<Trial> run_cases(const RunCase& run, const std::vector<Case>& cases, int threads) {
  std::vector<Trial> trials(cases.size());
  std::atomic<size_t> next{0}, first_bad{cases.size()};
  auto work = [&] {
    for (size_t n = next++; n < cases.size(); n = next++) {
      if (n > first_bad) continue;
      trials[n] = run(cases[n]);
      if (trials[n].valid && !trials[n].failure) continue;
      size_t known = first_bad;
      while (n < known && !first_bad.compare_exchange_weak(known, n)) {
      }
    }
  };
  on_threads(threads, work);
  return trials;
}

namespace {

bool can_decide(const spec::Capture& capture, const Options& options, Report& report) {
  auto say = [&](Verdict v, const char* code, const std::string& message) {
    report.verdict = v;
    report.diagnostics.error(code, {}, message);
    return false;
  };
  const spec::Form& form = capture.form;
  if (const std::string why = Family::of(form).undecided(form); !why.empty())
    return say(Verdict::inconclusive, "check.terms", fmt::format("{}: {}", form.name, why));
  if (capture.cases.empty())
    return say(Verdict::inconclusive, "check.cases", "the capture holds no golden cases");
  if (options.self_check_step > 0 &&
      !spec::check_goldens(capture, options.self_check_step, report.diagnostics)) {
    report.verdict = Verdict::inconclusive;
    return false;
  }
  return true;
}

// Whether cases can tell what the program does.
bool decides(const tl::Program& program, const spec::Form& form, Report& report) {
  if (equalities_are_seen(program, form, report.diagnostics)) return true;
  report.verdict = Verdict::inconclusive;
  return false;
}

void refute(const tl::Program& program, const spec::Capture& capture, const Options& options,
            Case c, Failure failure, Report& report) {
  report.verdict = Verdict::refuted;
  const RunCase run = [&](const Case& smaller) { return run_trial(program, capture, smaller); };
  if (options.shrink) std::tie(c, failure) = shrink(run, capture, c, std::move(failure));
  if (failure.fault)
    report.diagnostics.add(*failure.fault);
  else if (const Family& own = Family::of(capture.form);
           own.can_locate(program, capture.form, failure.what.output))
    own.locate(program, capture, c, failure.what);
  report.counterexample = std::move(failure.what);
}

// What the solver says about indices, for every size. A counterexample of its own that no run shows
// leaves the check undecided.
void prove_indices(const tl::Program& program, const spec::Form& form, const Options& options,
                   Report& report) {
  if (!options.proofs) return;
  proofs::Solver solver;
  if (solver.load(proofs::Solver::candidates())) {
    report.indices = Family::of(form).indices(program, form, solver);
  } else {
    report.indices.emplace();
    report.indices->not_run =
        fmt::format("there is no solver ({}): pip install z3-solver", solver.why());
  }
}

// The sizes at which the solver says that program and specification differ, where they are no work.
std::vector<Case> cases_of_counterexamples(const tl::Program& program, const spec::Capture& capture,
                                           const Options& options, const Report& report) {
  // Blocks that take turns are all there at once, and wait for each other.
  const int64_t most = tl::takes_turns(program) ? 1 << 15 : 1 << 20;
  std::vector<Case> cases;
  if (!report.indices) return cases;
  const spec::Form& form = capture.form;
  for (const proofs::Obligation& o : report.indices->obligations) {
    if (o.answer != proofs::Answer::refuted) continue;
    const auto size = [&](const spec::Size& s) {
      return s.name.empty() ? s.constant : o.at.at(s.name);
    };
    const int64_t b = o.at.count("b") ? o.at.at("b") + 1 : 1;
    if (size(form.M) > most || size(form.N) > most || b > 1000) continue;
    Case c = case_of(capture, b, size(form.M), size(form.N), 20000 + cases.size());
    choose_heads(form, c, false);
    if (!form.M.name.empty() && spec::heads_are_alike(form)) {
      c.heads = {o.at.count("h") ? o.at.at("h") : 0};
      c.key_heads = 1;
    }
    if (scores_of(form, c) <= options.scores) cases.push_back(std::move(c));
  }
  return cases;
}

void undecided_by_proof(Report& report) {
  const proofs::Obligation* o =
      report.indices ? report.indices->first(proofs::Answer::refuted) : nullptr;
  if (!o || report.verdict != Verdict::holds) return;
  report.verdict = Verdict::inconclusive;
  report.diagnostics
      .error("check.indices", o->span, fmt::format("{}: not so at {}", o->what, o->message))
      .hint =
      "no case that ran shows it; if these sizes or data cannot be, say so in the specification";
}

// Of each tensor of integers the least and the largest that a case has.
using Ranges = std::map<std::string, std::pair<int64_t, int64_t>>;

// "chosen 0 to 42"
std::vector<std::string> words_of(const Ranges& ranges) {
  std::vector<std::string> out;
  for (const auto& [name, range] : ranges)
    out.push_back(fmt::format("{} {} to {}", name, range.first, range.second));
  return out;
}

// Runs them all; false where one is refuted or invalid, and then the report says so.
bool run_values(const tl::Program& program, const spec::Capture& capture, const Options& options,
                std::vector<Case>& cases, Ranges& integers, Report& report) {
  constexpr exec::Fused kFused[] = {exec::Fused::none, exec::Fused::left, exec::Fused::right};
  for (size_t n = 0; n < cases.size(); ++n) {
    cases[n].packed = packs_heads(program);
    cases[n].fused = kFused[(n + n / 3) % 3];  // every third has the same grid
  }
  std::vector<Trial> trials =
      run_cases([&](const Case& c) { return run_trial(program, capture, c); }, cases,
                std::max(options.threads, 1));
  for (const Trial& t : trials)
    for (const auto& [name, range] : t.integers) {
      const auto [at, first] = integers.emplace(name, range);
      at->second = {std::min(at->second.first, range.first),
                    std::max(at->second.second, range.second)};
    }
  report.integers = words_of(integers);
  for (size_t n = 0; n < trials.size(); ++n) {
    Trial& t = trials[n];
    if (!t.valid) {
      report.verdict = Verdict::invalid;
      report.diagnostics = std::move(t.diagnostics);
      return false;
    }
    ++report.cases;
    report.ran.insert(t.ran.begin(), t.ran.end());
    report.shapes.push_back(describe(cases[n]));
    report.rows += t.rows;
    report.key_blocks += t.key_blocks;
    report.worst = std::max(report.worst, t.worst);
    if (!t.failure) continue;
    refute(program, capture, options, cases[n], std::move(*t.failure), report);
    return false;
  }
  return true;
}

// Whether it moves or computes something: waits and arrivals are the schedules' to walk.
bool touches_values(const tl::Stmt& s) {
  using tl::Family;
  if (s.op == tl::Op::call) return true;  // of another tile, perhaps
  for (const Family f : {Family::copy_in, Family::copy_out, Family::move, Family::contract,
                         Family::map, Family::reduce, Family::gather, Family::result})
    if (tl::is(s.op, f)) return true;
  return false;
}

// The first in the text that no case has run, of those that some launch may run; null: all have.
const tl::Stmt* never_run(const Report& r) {
  if (!r.indices) return nullptr;
  const tl::Stmt* first = nullptr;
  for (const tl::Stmt* s : r.indices->statements)
    if (touches_values(*s) && !r.ran.count(s) && (!first || s->span.begin < first->span.begin))
      first = s;
  return first;
}

// Of one head, as many rows as keys: a loop over whole blocks may have two of them where a row sees
// hundreds of keys alone. None where the function's sizes stay small, or it would be too much work.
std::vector<Case> longer_cases(const spec::Capture& capture, const Options& options,
                               const Report& report, int64_t rows) {
  const spec::Form& form = capture.form;
  if (form.M.name.empty() || form.N.name.empty()) return {};
  Case c = case_of(capture, 1, rows, rows, 30000 + rows);
  choose_heads(form, c, false);
  keep_one_head(form, c);
  // So far apart that a row's largest comes late.
  for (const std::string& q : Family::of(form).sharpened(form)) c.draws.arguments[q].scale *= 6;
  if (scores_of(form, c) > options.further_scores) return {};
  std::vector<Case> cases = {std::move(c)};
  keep_to_limits(form, report.indices, options.scores, cases);
  return cases;
}

void check_values(const tl::Program& program, const spec::Capture& capture, const Options& options,
                  Report& report) {
  std::vector<Case> cases = make_cases(capture, options);
  const bool proved = report.indices && report.indices->complete();
  for (Case& c : cases_beyond(program, capture, options, proved, report.unreached))
    cases.push_back(std::move(c));
  for (Case& c : planted_cases(capture, options)) cases.push_back(std::move(c));
  for (Case& c : cases_of_tails(program, capture, options)) cases.push_back(std::move(c));
  for (Case& c : cases_of_counterexamples(program, capture, options, report))
    cases.push_back(std::move(c));
  keep_to_limits(capture.form, report.indices, options.scores, cases);
  report.verdict = Verdict::holds;
  Ranges integers;
  if (!run_values(program, capture, options, cases, integers, report)) return;
  for (int64_t rows = 640; rows <= 2560 && options.schedules && never_run(report); rows *= 2) {
    std::vector<Case> longer = longer_cases(capture, options, report, rows);
    if (!run_values(program, capture, options, longer, integers, report)) return;
    for (Case& c : longer) cases.push_back(std::move(c));
  }
  if (options.examine) report.unseen = unseen(program, capture, cases, options);
}

}  // namespace

Options options_for(Effort effort) {
  Options o;
  o.effort = effort;
  o.leave_out = effort != Effort::quick;
  if (effort == Effort::quick) {
    o.cases = 8;
    o.scores = 5'000'000;
    o.further_scores = 4'000'000;
    o.exact_cases = 1;
    o.missed = 0x1p-50;
    o.schedules = false;
  }
  o.explore_schedules = effort == Effort::full;
  return o;
}

std::string_view name(Effort e) {
  return e == Effort::quick ? "quick" : e == Effort::full ? "full" : "default";
}

std::string_view name(Verdict v) {
  switch (v) {
    case Verdict::holds:
      return "holds";
    case Verdict::refuted:
      return "refuted";
    case Verdict::inconclusive:
      return "inconclusive";
    case Verdict::invalid:
      return "invalid";
  }
  return "invalid";
}

namespace {

// A loop may make as many turns as in some kind of block, or repeats itself. Where nothing is known
// of the most, one that nobody has entered may be entered elsewhere.
void bound_loops(const Report& report, exec::ScheduleReport& r) {
  std::map<const tl::Stmt*, int64_t> most;
  for (const auto& [loop, turns] : r.turns) most[loop] = turns > 0 ? turns : -1;
  if (report.indices)
    for (const proofs::Bound& b : report.indices->loops) most[b.loop] = b.most;
  for (const auto& [loop, turns] : most) {
    const auto seen = r.turns.find(loop);
    if (r.repeated.count(loop) ||
        (turns >= 0 && turns <= (seen == r.turns.end() ? 0 : seen->second)))
      continue;
    r.longer = fmt::format("`{}`, {}", tl::print_head(*loop), loop->span.place());
    return;
  }
}

// The orders of the agents; a finding refutes what the values did not.
void check_orders(const tl::Program& program, const Options& options, Report& report) {
  exec::ScheduleOptions schedules;
  schedules.explore = options.explore_schedules;
  schedules.threads = std::max(options.threads, 1);
  report.schedules = exec::check_schedules(program, schedules);
  bound_loops(report, *report.schedules);
  if (report.verdict != Verdict::holds) return;
  const exec::ScheduleReport& r = *report.schedules;
  if (!r.findings.empty()) {
    report.verdict = Verdict::refuted;
    for (const Diagnostic& d : r.findings) report.diagnostics.add(d);
    Counterexample e;
    e.output = r.findings[0].code;
    e.message = r.findings[0].message;
    e.span = r.findings[0].span;
    report.counterexample = std::move(e);
  } else if (!r.unable.empty()) {
    report.verdict = Verdict::inconclusive;
    report.diagnostics.error("check.schedules", {}, r.unable);
  }
}

}  // namespace

Report check(const tl::Program& program, const spec::Capture& capture, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  Report report;
  if (options.laws && !tl::verify(program, report.diagnostics)) {
    report.verdict = Verdict::invalid;
    return report;
  }
  report.effort = options.effort;
  report.values = options.values;
  if (can_decide(capture, options, report) && decides(program, capture.form, report)) {
    report.verdict = Verdict::holds;
    prove_indices(program, capture.form, options, report);
    report.unasked = unasked_comparison(program, capture.form);
    if (options.values) check_values(program, capture, options, report);
    if (options.exact && report.verdict == Verdict::holds)
      check_exact(program, capture, options, report);
    if (const tl::Stmt* s = report.exact.ran ? never_run(report) : nullptr)
      report.never_run = fmt::format("`{}`, {}", tl::print_head(*s), s->span.place());
    if (!options.values && !report.exact.ran && report.verdict == Verdict::holds) {
      report.verdict = Verdict::inconclusive;
      report.diagnostics.error(
          "check.readings", {},
          "no reading ran: " +
              (report.exact.not_run.empty() ? "none was asked for" : report.exact.not_run));
    }
  }
  undecided_by_proof(report);
  if (options.schedules && report.verdict == Verdict::holds) check_orders(program, options, report);
  if (options.require_proof && report.verdict == Verdict::holds &&
      scope(report) != Scope::every_launch) {
    report.diagnostics.error(
        "check.proof", {},
        fmt::format("a proof for every launch is required, and it {}", headline(report)));
    report.verdict = Verdict::inconclusive;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  report.seconds = seconds.count();
  return report;
}

}  // namespace kw::check
