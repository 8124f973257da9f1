// How well somebody changes kernels, and by which way: the same proposer, asked in two languages.
//
// The question is CuBridge's (Table 2): does it help to change a kernel as a program of tiles
// rather than as CUDA? So a proposer gets the same expert's kernel with the same constants set, the
// same function as a formula, and the same form of answer, edits of numbered lines; once of the
// CUDA text and once of its TL program. No rule writes anything. An answer passes when its program
// obeys the laws, holds in the check that any program goes through, and compiles without spills.
//
//   cuda  the CUDA text; what is said of a wrong answer is what a compiler and a test would say
//   tl    the TL program; what is said is the law or the counterexample, by statement
//
// The other question is QiMeng-Attention's: does a kernel that nobody has written come out better
// in two steps? No expert's kernel is shown, and the answer is a whole text:
//
//   one step    from the formula to a scheduled TL program
//   two steps   a sketch, then its tiles; the passes write the rest (docs/sketches.md)
//   cute        from the formula to a kernel in CuTe; a compiler judges it and nobody else, so the
//               best that it can be here is undecided
//
// One conversation gives two figures: whether its first answer passes (a direct rewrite; of two
// steps the first answer of each), and whether any of its answers does (with feedback). A CUDA
// answer that leaves the vocabulary cannot be read back, and so cannot be checked: it does not pass
// here, although it may be right.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "author/site.h"
#include "driver/environment/tools.h"
#include "eval/watched.h"
#include "propose/propose.h"

namespace kw::eval {

enum class Arm { cuda, tl, one_step, two_steps, cute };
std::string_view name(Arm arm);
bool edits(Arm arm);  // an expert's kernel: the first question's

struct Options {
  std::vector<Arm> arms;
  int samples = 5;
  int jobs = 4;  // conversations at a time
  std::string target;
  propose::Options loop;  // of one conversation; its samples are ours
};

// One question, what its answer cost and why it was refused; an empty code: it passed.
struct Question {
  std::string code;
  long tokens_in = 0, tokens_out = 0;
  double dollars = 0, seconds = 0;  // until the answer was judged
  std::string step = {};            // of several: "sketch", "tiles"
  bool whole = true;                // false: accepted, this is a step and no program yet
};

using Conversation = std::vector<Question>;
bool passed(const Conversation& conversation);
// The code of a kernel in CuTe that compiles.
inline constexpr const char* kUndecidedCute = "cute.inconclusive";
// It ended with an answer that nothing refuses and nothing can show to be right.
bool undecided(const Conversation& conversation);

struct Measured {
  std::string spec;
  Arm arm = Arm::tl;
  std::vector<Conversation> samples;
};

// What both arms of edits start from, for one function.
struct Task {
  const driver::Tools& tools;
  const spec::Capture& capture;
  const transfer::Target& target;
  const propose::Templates &tl, &cuda;
  const SourcePtr& expert;
  const tl::Program& lifted;  // from the expert's text
};

// What the arms without an expert's kernel start from.
struct Writing {
  const driver::Tools& tools;
  const author::Texts& texts;
  const author::Site& site;
  const std::vector<std::string>& headers;  // folders with CUTLASS's and CCCL's, for CuTe
};

// Holds one conversation of an arm. Throws models::ProviderError where nobody answers, which says
// nothing of the proposer: such a run has no result. Reports what the stages before a question do.
Conversation converse_in_tl(const Task& task, Watched& provider, const Options& options,
                            Diagnostics& diagnostics);
Conversation converse_in_cuda(const Task& task, Watched& provider, const Options& options,
                              Diagnostics& diagnostics);
Conversation converse_writing(const Writing& writing, Arm arm, Watched& provider,
                              const Options& options, Diagnostics& diagnostics);

using Converse = std::function<Conversation(Arm, Watched&, Diagnostics&)>;

// All samples of all arms for one function, appended to `all`. Throws and reports likewise; false
// where it reported.
bool measure(const std::string& function, const Converse& converse, models::Provider& provider,
             const Options& options, std::vector<Measured>& all, Diagnostics& diagnostics);

// Whether an accepted program becomes a cubin; the code of what refuses, or empty.
std::string cannot_build(const Task& task, const transfer::Result& accepted,
                         const std::string& target);

// A table for a person; the same with every question for a program.
std::string print(const std::vector<Measured>& all);
nlohmann::ordered_json to_json(const std::vector<Measured>& all);

}  // namespace kw::eval
