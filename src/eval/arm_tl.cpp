// Through TL: the loop of `transfer --proposer model`, one conversation of it, and a compiler.
#include "eval/eval.h"
#include "lift/lift.h"
#include "lower/launch_plan.h"
#include "lower/lower.h"

namespace kw::eval {

std::string cannot_build(const Task& task, const transfer::Result& accepted,
                         const std::string& target) {
  Diagnostics d;
  const auto lowered = lower::lower(accepted.program, task.expert, task.tools.clang, d);
  const auto plan = lowered ? lower::plan_launch(accepted.program, target, d) : std::nullopt;
  const auto built = plan ? driver::build(task.tools, make_source("kernel.cu", lowered->text),
                                          target, plan->entries(), plan->parameter_bytes, d)
                          : std::nullopt;
  if (built) return "";
  for (const Diagnostic& one : d.all())
    if (one.severity == Severity::error) return one.code;
  return "internal.build";
}

Conversation converse_in_tl(const Task& task, Watched& provider, const Options& options,
                            Diagnostics& diagnostics) {
  propose::Options loop = options.loop;
  loop.samples = 1;
  Diagnostics found;  // propose.none is no problem here but a result
  const propose::Proposed asked =
      propose::propose({task.lifted, task.capture, task.target, task.tl}, provider, loop, found);
  if (asked.problem) throw *asked.problem;
  if (asked.attempts.empty())
    for (const Diagnostic& d : found.all()) diagnostics.add(d);
  Conversation out;
  for (const propose::Attempt& a : asked.attempts) {
    if (a.refusal.code == "budget.tokens") break;  // nothing was asked
    out.push_back({a.refusal.code, a.answer.tokens_in, a.answer.tokens_out, a.answer.dollars,
                   provider.seconds(out.size())});
  }
  if (asked.result) out.back().code = cannot_build(task, *asked.result, options.target);
  return out;
}

}  // namespace kw::eval
