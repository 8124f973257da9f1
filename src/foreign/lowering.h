// Lower by a model: a change of the lifted program becomes a patch on the foreign files.
//
// The source program and the changed one are compared line by line; each line that differs belongs
// to a part of the lift, a part to its regions of the CUDA text. A proposer sees those regions and
// answers with line edits inside them (edits.h). What it wrote is compiled, its cubin audited and
// held against the launch contract, and proven where there is a GPU; what a compiler or the prover
// says goes back. Reference-guided lowering, as in CuBridge (Ma et al., ACL 2026).
//
// There is no lens over a foreign text: lifting the result cannot show that it means the program.
// So what comes out is *inconclusive* until a GPU has proven it, row by row, against the function.
#pragma once
#include <functional>

#include "foreign/ask.h"
#include "foreign/compile.h"
#include "foreign/edits.h"
#include "foreign/lift.h"
#include "tl/program.h"

namespace kw::foreign {

struct LowerPrompts {
  std::string system, user;  // prompts/foreign.lower.system.md, prompts/foreign.lower.user.md
};

struct Lowered {
  std::map<std::string, std::vector<std::string>> files;  // those that changed
  std::string patch;                                      // for git apply in the sources' folder
  Compiled built;
  nlohmann::json launch;  // launch.json
  int removed = 0, added = 0;
};

struct LowerTask {
  const Description& description;
  const Sources& sources;
  const Lift& lift;
  const tl::Program& source;  // of the lift
  const tl::Program& target;
  std::string torch;  // for {torch}
  const LowerPrompts& prompts;
  // What a GPU finds in what was built; empty where none is asked.
  std::function<Complaint(const Lowered&)> prove;
};

// What the change touches: regions of the parts whose lines differ, of those that read what these
// lines compute (a loop that runs to a bound, a softmax of scores that may now all be -inf), and
// the declarations.
struct Touched {
  std::string difference;  // the program's lines, as a patch
  std::vector<Range> ranges;
  std::vector<std::string> parts;
};
Touched touched_by(const LowerTask& task);

// The launch contract of the changed program: the description's, with the arguments that are new.
// Refuses with lower.argument (one that the program does not have, or lacks a place), lower.offset.
std::optional<nlohmann::json> contract(const LowerTask& task, const SourceEdits& edits,
                                       Refusal& refusal);

// The program that it lowers to, or nothing when no answer was enough; `best` is then the change
// that came furthest. Where the two programs are one nobody is asked: the sources are compiled as
// they are. Reports foreign.build (they do not compile, or not to what the description says),
// prompt.slot and what compile() does.
struct Lowering {
  std::optional<Lowered> done;
  Lowered best;
};
Lowering lower(const LowerTask& task, Asker& asker, Diagnostics& diagnostics);

}  // namespace kw::foreign
