// Without an expert's kernel: in one step, in two, and straight to CuTe.
//
// The two arms in TL end with the same judges: laws, the loop's check, the one that decides, and
// the compiler. What differs is what is asked for. The passes reshape between two products and know
// which side of them is transposed, so a sketch can hardly go wrong there; that is what two steps
// are for, and the table counts how often one step does.
#include "author/write.h"
#include "eval/cute.h"
#include "eval/eval.h"
#include "lower/launch_plan.h"
#include "lower/print_module.h"

namespace kw::eval {
namespace {

propose::Refusal cannot_be_built(const Writing& writing, const tl::Program& program) {
  const std::string& target = writing.site.machine.target;
  Diagnostics d;
  const auto text = lower::print_cuda(program, d);
  const auto plan = text ? lower::plan_launch(program, target, d) : std::nullopt;
  const auto built = plan ? driver::build(writing.tools, make_source("kernel.cu", *text), target,
                                          plan->entries(), plan->parameter_bytes, d)
                          : std::nullopt;
  if (built) return {};
  for (const Diagnostic& one : d.all())
    if (one.severity == Severity::error) return {one.code, "it cannot be built: " + one.message};
  return {"internal.build", "it cannot be built"};
}

}  // namespace

Conversation converse_writing(const Writing& writing, Arm arm, Watched& provider,
                              const Options& options, Diagnostics& diagnostics) {
  author::Conversation talk(
      provider, {options.loop.attempts, options.loop.tokens, options.loop.answer_tokens});
  const author::Builds builds = [&](const tl::Program& program) {
    return cannot_be_built(writing, program);
  };
  const author::Site& site = writing.site;
  if (arm == Arm::one_step)
    author::ask_kernel(site, writing.texts.kernel, talk, builds, diagnostics);
  if (arm == Arm::cute) ask_cute(writing, talk, diagnostics);
  if (arm == Arm::two_steps)
    if (const auto sketch = author::ask_sketch(site, writing.texts.sketch, talk, diagnostics))
      author::ask_sizes(site, sketch->program, writing.texts.tiles, talk, builds, diagnostics);
  if (talk.problem()) throw *talk.problem();
  Conversation out;
  for (const author::Attempt& a : talk.attempts()) {
    if (!a.answered && !out.empty() && !out.back().code.empty()) break;  // nothing was asked
    out.push_back({a.refusal.code, a.answer.tokens_in, a.answer.tokens_out, a.answer.dollars,
                   provider.seconds(out.size()), a.step, a.step != "sketch"});
    // Nothing refuses a kernel in CuTe that compiles, and nothing can show it to be right.
    if (arm == Arm::cute && a.refusal.code.empty()) out.back().code = kUndecidedCute;
  }
  return out;
}

}  // namespace kw::eval
