// The two files between the machine that compiles a kernel's candidates and the one that times
// them.
//
// tune.json, in a folder with prove.json (prove_spec.h) and a folder candidates/NAME with
// kernel.cubin and launch.json for each:
//
//   { "candidates": [ { "name": "00", "text": "BM = 256, BN = 128", "present": true }, ... ], ... }
//
// Candidates compute the same function on the same arguments and differ in their constants; one may
// be what is used at present. Further fields are for whoever made the folder. The case of
// prove.json that is timed is what they are tuned for; the others are what each must get right
// first.
//
// times.json, what a GPU said:
//
//   { "gpu": "NVIDIA H200", "driver": "13.0", "date": "2026-11-21", "case": "B1 ...", "flop": 1e12,
//     "candidates": [ { "name": "00", "verdict": "ok", "why": "", "ms": [1.6, 1.61, ...] }, ... ] }
//
// A verdict is ok, wrong (an output differs) or crashed; the last two have no times.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace kw::runtime {

struct TuneCandidate {
  std::string name;  // of its folder; digits and letters
  std::string text;  // its constants, for a person
  bool present = false;
};

struct CandidateTimes {
  std::string name, verdict, why;
  std::vector<double> ms;  // one launch, of each round

  bool ok() const { return verdict == "ok" && !ms.empty(); }
  double median() const, min() const, max() const;  // of a candidate that is ok
};

struct TuneTimes {
  std::string gpu, driver, date, shape;
  double flop = 0;
  std::vector<CandidateTimes> candidates;
};

// Reports tune.json by the field.
std::optional<std::vector<TuneCandidate>> read_tune_candidates(const std::string& folder,
                                                               Diagnostics& diagnostics);

nlohmann::json to_json(const TuneTimes& times);
// Reports tune.times by the field.
std::optional<TuneTimes> read_tune_times(const SourcePtr& source, Diagnostics& diagnostics);

}  // namespace kw::runtime
