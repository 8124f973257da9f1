// From all combinations of a kernel's constants to the few that are worth a GPU's time.
//
// Each combination goes through transfer as a row of the user's would, through the laws (which hold
// the budgets of shared memory and registers) and through the launch plan. What is refused is
// counted by the number of the law. The rest is put in an order by a rough model of the cycles that
// a score takes; it guesses, and no figure of it is shown to anybody. Then they are compiled in
// that order until enough have compiled, and are not the same machine code as one before.
//
// Values are not checked here: that takes seconds each, and the constants decide about the order of
// sums alone. The row that wins goes through `make`, which checks them.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver/tune/space.h"
#include "lower/launch_plan.h"
#include "transfer/transfer.h"

namespace kw::driver {

struct Candidate {
  Setting constants;
  transfer::Result transferred;
  lower::LaunchPlan plan;
  double cost = 0;  // of the model, with siblings counted: lower comes first
};

using Refusals = std::map<std::string, int>;  // by law or other code

struct Candidates {
  std::vector<Candidate> lawful;  // best guess first
  Refusals refused;
  int all = 0;
  Diagnostics example;  // the first refusal, for when nothing is left
};

Candidates lawful_candidates(const tl::Program& source, const spec::Form& form,
                             const std::string& target, const Space& space);

// The model: cycles of a multiprocessor for one score of each of 64 rows. What probably needs more
// registers than a warpgroup has counts far more: the compiler has the last word, but is asked
// last.
double modelled_cycles(const Candidate& candidate, const std::string& row_tile,
                       const std::string& key_tile);

// What came of compiling one: `code` names the refusal, or else `fingerprint` tells machine code
// apart.
struct Outcome {
  std::string code, fingerprint, message;
};

struct Kept {
  std::vector<size_t> indices;  // in order
  Refusals refused;             // "same" counts machine code that an earlier one has
  std::map<std::string, std::string> messages;  // the first of each code
  int compiled = 0;
};

// Compiles 0, 1, ... of `count`, `jobs` at a time, until `keep` are good, and gives the first
// `keep` of those. Which they are does not depend on `jobs`. `compile` is called from several
// threads.
Kept first_good(size_t count, size_t keep, int jobs, const std::function<Outcome(size_t)>& compile);

// "1008 candidates: 231 break warpgroups.C3 (the registers ...), 38 break shared.C2 (...); 96
// left".
std::string told(const Candidates& candidates);

}  // namespace kw::driver
