// For what a program is written where there is no expert's: a function, and a GPU.
//
// An author sees the function as a formula under names of ours (propose/anonymous.h), the
// arguments that whoever launches a kernel gives it, and an example of another function, a product
// of scores without a softmax, at the level that is asked for. The example is made by the passes
// for this GPU from one sketch (prompts/author.example.tl), so it cannot lag behind them, and no
// author sees the program that it is asked for.
#pragma once
#include <optional>
#include <string>

#include "author/conversation.h"
#include "check/check.h"
#include "propose/judge.h"
#include "sketch/size.h"

namespace kw::author {

struct Texts {           // of prompts/
  Prompt sketch, tiles;  // of a program's two steps
  Prompt kernel;         // scheduled, in one step
  Prompt cute;           // likewise, in CuTe
  std::string example;   // author.example.tl
};

struct Checks {
  check::Options rehearsal = propose::rehearsal_check();  // whose findings the author hears
  check::Options decides;                                 // the one that accepts
};

struct Site {
  const spec::Capture& capture;
  spec::Capture nameless;  // what the author and the checks in the loop see
  sketch::Machine machine;
  sketch::Request request;  // of the passes: this function's constants and type
  tl::Program plain;        // the example as a sketch, with these
  tl::Program scheduled;    // the same as the passes schedule it
  const Checks& checks;

  bool has_lse() const;  // the function's sums of weights are a softmax's
  std::string head(const tl::Program& example) const;  // what an answer begins with
};

// Reports author.product for a function that is no attention, and what reading and sizing the
// example report.
std::optional<Site> make_site(const spec::Capture& capture, const sketch::Machine& machine,
                              const Texts& texts, const Checks& checks, Diagnostics& diagnostics);

// The answer's text, read, held against the laws, and against the arguments that `example` gets
// from its launcher. Refuses as propose::read_program does.
std::optional<tl::Program> read(const Site& site, const std::string& text,
                                const tl::Program& example, propose::Refusal& refusal);

// A scheduled program through the loop's check and then the one that decides, of which the author
// hears only that it failed. The program under the user's names, when it holds.
std::optional<tl::Program> accept(const Site& site, const tl::Program& scheduled, Judged& judged);

}  // namespace kw::author
