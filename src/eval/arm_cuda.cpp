// Directly: the expert's CUDA text, edited line by line, and read back to be judged.
//
// The answer has the form that it has for TL, so that only the language differs. The judge is the
// same, too: the text is lifted, and what is lifted goes through laws, checks and compiler. What
// the proposer hears of it is what somebody with a compiler and a test would know: where the text
// cannot be read, or on which shape and row the output is how wrong. Laws and statements of TL are
// not told; they are what this arm does without.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "eval/eval.h"
#include "lift/lift.h"
#include "lower/lower.h"
#include "propose/anonymous.h"
#include "propose/answer.h"
#include "propose/bindings.h"
#include "propose/family.h"
#include "propose/judge.h"
#include "propose/patch.h"
#include "propose/words.h"
#include "support/lines.h"
#include "tl/laws/laws.h"

namespace kw::eval {
namespace {

constexpr size_t kMostTold = 4000;  // bytes

struct Judgement {
  propose::Refusal refusal;  // empty: it passed
  std::string told;          // to the proposer
};

class Judge {
 public:
  Judge(const Task& task, const Options& options, const transfer::Result& begun)
      : task_(task),
        options_(options),
        begun_(begun),
        nameless_(propose::anonymous(task.capture)) {}

  const spec::Capture& nameless() const { return nameless_; }

  Judgement judge(const std::string& text) const {
    Diagnostics d;
    const SourcePtr source = make_source("kernel.cu", text);
    const auto lifted = lift::lift(source, task_.tools.clang, d);
    if (!lifted) return unread(d);
    Judgement out;
    const auto program = propose::read_program(tl::print(*lifted), begun_.program,
                                               nameless_.form.terms.size() > 1, out.refusal);
    if (!program) {
      out.told = tl::law(out.refusal.code)
                     ? "it compiles, and what it does on a GPU is undefined: a copy, a product, a "
                       "barrier or a type is used in a way that it cannot be"
                     : out.refusal.sentence;
      return out;
    }
    const propose::Judged rehearsed =
        propose::rehearse(*program, nameless_, options_.loop.rehearsal);
    out.refusal = rehearsed.refusal;
    if (!out.refusal.code.empty()) {
      out.told = "it compiles, and its output is wrong: " + without_statement(out.refusal.sentence);
      return out;
    }
    accept(*program, out);
    return out;
  }

 private:
  static Judgement unread(const Diagnostics& d) {
    Judgement out;
    for (const Diagnostic& one : d.all())
      if (one.severity == Severity::error && out.refusal.code.empty())
        out.refusal = {one.code, propose::one_line(one.message)};
    out.told = propose::clipped(render(d), kMostTold);
    return out;
  }

  // A test says what is wrong with the output, and not which statement is to blame.
  static std::string without_statement(const std::string& sentence) {
    return sentence.substr(0, sentence.find("; the first statement that differs"));
  }

  void accept(const tl::Program& program, Judgement& out) const {
    transfer::Result result = begun_;
    result.program = propose::with_names(program, task_.capture.form);
    if (!propose::bind_arguments(result, begun_.program, task_.capture.form, out.refusal)) {
      out.told = out.refusal.sentence;
      return;
    }
    const check::Report report = check::check(result.program, task_.capture, options_.loop.check);
    if (report.verdict != check::Verdict::holds)
      out.refusal = {fmt::format("accept.{}", check::name(report.verdict)),
                     "it passed one test and failed another, on inputs that are not shown"};
    else if (const std::string code = cannot_build(task_, result, options_.target); !code.empty())
      out.refusal = {code, "it cannot be built without spills"};
    out.told = out.refusal.sentence;
  }

  const Task& task_;
  const Options& options_;
  const transfer::Result& begun_;
  const spec::Capture nameless_;
};

std::string feedback(const std::optional<propose::Edits>& edits, const Judgement& last) {
  std::string out;
  if (edits)
    out = fmt::format("The last answer was:\n\n```json\n{}\n```\n\n",
                      propose::to_json(*edits).dump());
  return out + fmt::format(
                   "It was refused, and nothing of it is in the program above.\n\n{}\n\n"
                   "Answer with all edits of the numbered program.",
                   last.told);
}

}  // namespace

Conversation converse_in_cuda(const Task& task, Watched& provider, const Options& options,
                              Diagnostics& diagnostics) {
  const auto begun = transfer::begin(task.lifted, task.capture.form, task.target, diagnostics);
  const auto text = begun ? lower::lower(begun->program, task.expert, task.tools.clang, diagnostics)
                          : std::nullopt;
  if (!text) return {};
  const std::vector<std::string> lines = lines_of(text->text);
  const Judge judge(task, options, *begun);
  Conversation out;
  std::string heard_last = "This is the first attempt.";
  while (static_cast<int>(out.size()) < options.loop.attempts) {
    const auto user =
        propose::fill(task.cuda.user,
                      {{"program", propose::numbered(lines)},
                       {"function", propose::describe(judge.nameless().form)},
                       {"letters", propose::Family::of(judge.nameless().form).letters(task.cuda)},
                       {"feedback", heard_last}},
                      diagnostics);
    if (!user) return {};
    const models::Answer answer =
        provider.ask({"", static_cast<int>(out.size()) + 1, 1, task.cuda.system, *user,
                      propose::answer_schema(), options.loop.answer_tokens},
                     [](size_t) {});
    Judgement judged;
    const auto edits = propose::read_answer(answer, judged.refusal);
    const auto changed = edits ? propose::apply(lines, *edits, judged.refusal) : std::nullopt;
    if (changed)
      judged = judge.judge(*changed);
    else
      judged.told = judged.refusal.sentence;
    out.push_back({judged.refusal.code, answer.tokens_in, answer.tokens_out, answer.dollars,
                   provider.seconds(out.size())});
    if (judged.refusal.code.empty()) break;
    heard_last = feedback(edits, judged);
  }
  return out;
}

}  // namespace kw::eval
