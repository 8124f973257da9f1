#include "propose/judge.h"

#include <fmt/format.h>

#include "propose/words.h"

namespace kw::propose {
namespace {

constexpr uint64_t kRehearsal = 7001;  // seeds of the loop's inputs; any but 0

std::string why(const check::Report& report) {
  if (report.counterexample) {
    const check::Counterexample& e = *report.counterexample;
    std::string out = e.message;
    if (!e.statement.empty())
      out +=
          fmt::format("; the first statement that differs is `{}`: {}", e.statement, e.difference);
    return out;
  }
  for (const Diagnostic& d : report.diagnostics.all())
    if (d.severity == Severity::error) return d.message;
  return "no reason was given";
}

// Times differ from run to run, and a prompt must not.
std::string without_times(const check::Report& report) {
  check::Report copy = report;
  copy.seconds = copy.exact.seconds = 0;
  if (copy.schedules) copy.schedules->seconds = 0;
  return check::print(copy);
}

}  // namespace

check::Options rehearsal_check() {
  check::Options o = check::options_for(check::Effort::quick);
  o.schedules = true;
  o.examine = false;  // of the cases, not of the program
  o.rehearsal = kRehearsal;
  o.self_check_step = 0;  // the capture was held against PyTorch when it was opened
  return o;
}

Judged rehearse(const tl::Program& program, const spec::Capture& capture,
                const check::Options& options) {
  const check::Report report = check::check(program, capture, options);
  if (report.verdict == check::Verdict::holds) return {};
  return {{fmt::format("check.{}", check::name(report.verdict)), one_line(why(report))},
          without_times(report)};
}

}  // namespace kw::propose
