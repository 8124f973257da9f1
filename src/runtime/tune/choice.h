// Which candidate is best, and whether the difference to what is used at present counts.
//
// A difference smaller than the spread of the rounds is none (docs/measuring.md): the fastest takes
// the place of the present constants only where its median lies below every round of theirs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/tune/spec.h"

namespace kw::runtime {

struct TuneChoice {
  // Names; the runner-up and the present are empty where there is none that was timed.
  std::string fastest, runner_up, present;
  double runner_up_ratio = 0;  // how much faster the fastest is than the runner-up: 1.012
  double present_ratio = 0;    // and than the present
  bool keeps_present = false;  // the present constants stay
};

// Nothing when no candidate was timed.
std::optional<TuneChoice> choose(const std::vector<TuneCandidate>& candidates,
                                 const TuneTimes& times);

// One line a candidate, fastest first: name, median, spread, TFLOP/s, ratio to the fastest,
// constants; those that are wrong or crashed at the end with the reason.
std::string table(const std::vector<TuneCandidate>& candidates, const TuneTimes& times);

// "02 is fastest, 1.013x the present 00 and 1.002x the next, 05".
std::string sentence(const TuneChoice& choice);

}  // namespace kw::runtime
