#include "author/write.h"

#include <fmt/format.h>

#include "author/lines.h"
#include "propose/anonymous.h"
#include "propose/manual.h"
#include "propose/patch.h"
#include "sketch/schedule.h"

namespace kw::author {
namespace {

std::string shown(const tl::Program& program) {
  return fmt::format("```\n{}```", tl::print(program));
}

Question question_of(const Site& site, const char* step, const Prompt& prompt, tl::Level level,
                     const tl::Program& example) {
  return {step,
          prompt,
          {{"statements", propose::statements_manual(level)},
           {"expressions", propose::expressions_manual()},
           {"laws", propose::laws_manual(level)},
           {"example", tl::print(example)}},
          {{"head", site.head(example)}, {"function", propose::describe(site.nameless.form)}},
          lines_schema()};
}

// The answer as a program that obeys the laws.
std::optional<tl::Program> program_of(const Site& site, const models::Answer& answer,
                                      const tl::Program& example, Judged& judged) {
  const auto text = read_lines(answer, judged.refusal);
  if (!text) return std::nullopt;
  judged.shown = fmt::format("```\n{}```", *text);
  auto program = read(site, *text, example, judged.refusal);
  if (program) judged.shown = shown(*program);
  return program;
}

bool built(const Builds& builds, const tl::Program& program, Judged& judged) {
  if (builds) judged.refusal = builds(program);
  return judged.refusal.code.empty();
}

}  // namespace

std::optional<Written> ask_sketch(const Site& site, const Prompt& prompt,
                                  Conversation& conversation, Diagnostics& diagnostics) {
  std::optional<Written> out;
  const auto judge = [&](const models::Answer& answer) {
    Judged judged;
    auto program = program_of(site, answer, site.plain, judged);
    if (!program) return judged;
    Diagnostics found;
    const auto sized = sketch::size(*program, site.request, found);
    const auto scheduled = sized ? sketch::schedule(*sized, site.machine, found) : std::nullopt;
    if (!scheduled) {
      judged.refusal = propose::refusal_of(found);
      return judged;
    }
    auto accepted = accept(site, *scheduled, judged);
    if (accepted) out = Written{std::move(*program), std::move(*accepted)};
    return judged;
  };
  conversation.ask(question_of(site, "sketch", prompt, tl::Level::sketch, site.plain), judge,
                   diagnostics);
  return out;
}

std::optional<tl::Program> ask_sizes(const Site& site, const tl::Program& sketch,
                                     const Prompt& prompt, Conversation& conversation,
                                     const Builds& builds, Diagnostics& diagnostics) {
  std::optional<tl::Program> out;
  const auto further = [&](const Sized& sized, Judged& judged) {
    auto accepted = accept(site, sized.scheduled, judged);
    if (!accepted || !built(builds, *accepted, judged)) return false;
    out = std::move(accepted);
    return true;
  };
  ask_tiles(sketch, site.request, prompt, conversation, further, diagnostics);
  return out;
}

std::optional<Written> ask_kernel(const Site& site, const Prompt& prompt,
                                  Conversation& conversation, const Builds& builds,
                                  Diagnostics& diagnostics) {
  std::optional<Written> out;
  const auto judge = [&](const models::Answer& answer) {
    Judged judged;
    auto program = program_of(site, answer, site.scheduled, judged);
    auto accepted = program ? accept(site, *program, judged) : std::nullopt;
    if (accepted && built(builds, *accepted, judged))
      out = Written{std::move(*program), std::move(*accepted)};
    return judged;
  };
  conversation.ask(question_of(site, "kernel", prompt, tl::Level::scheduled, site.scheduled), judge,
                   diagnostics);
  return out;
}

}  // namespace kw::author
