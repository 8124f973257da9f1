// make: the stages in order, from a user's function to a folder with its kernel.
//
// Of a function's gradients, asked of a file, there are two such folders in one, that of the
// function beside it (training/halves.h).
//
//   out/NAME/  kernel.cu  kernel.tl  kernel.patch  kernel.cubin  kw/  launch.h  launch.json
//              prove.json  prove/  certificate.json  report.html  from/
//
// Each stage is reported as it ends, with its time. The folder appears whole or not at all.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/check.h"
#include "driver/environment/tools.h"
#include "models/providers/provider.h"
#include "propose/propose.h"
#include "transfer/tile_database.h"

namespace kw::driver {

// A variant that is made once more, on another kernel: what the rules wrote, what a person then
// made of it, and the constants that the rules set (rebase.h).
struct Earlier {
  SourcePtr by_rules, edited;
  std::vector<transfer::Constant> constants;
};

struct MakeOptions {
  std::string spec, function, dtype;
  std::string target = "sm_90a";
  std::string tiles;         // a file of the user's tile database, or empty
  std::string kernel;        // somebody's own kernel to start from (port.h), or empty: the corpus's
  bool from_sketch = false;  // start from a sketch, also where an expert's text is for the target
  std::string sketch;  // that of this file, or what is sized or scheduled there (from_sketch.h)
  std::optional<Earlier> earlier;
  std::string out;  // empty: out/NAME
  // Where the folder is written instead, as one half of `out` (training/halves.h); or empty.
  std::filesystem::path staged;
  spec::Training training = spec::Training::none;
  bool deterministic = false;  // of gradients: the same bits in every run
  bool gpu = false;
  check::Effort effort = check::Effort::usual;  // of the check; the certificate says so
  bool require_proof = false;                   // what is not proved for every launch is undecided
  models::Provider* provider = nullptr;         // who proposes in the rules' place, or null
  propose::Options propose;  // and how often it is asked; its check is that of the effort
};

// Seconds since the last lap, for a stage's line.
class StageClock {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// `say` gets a stage's name, what it found in one line, and its seconds.
using Say = std::function<void(const std::string& stage, const std::string& text, double seconds)>;

struct Made {
  Exit exit = Exit::own_fault;
  std::string folder;
  std::string explanation;  // of a refutation: the counterexample, ready to print
  // Of a model's attempts, where there were any and none was accepted: what they were, as JSON, and
  // the program that came furthest.
  std::string attempts, best;
};

Made make(const MakeOptions& options, const Say& say, Diagnostics& diagnostics);

// "prefix_lm: bf16, 32 query / 8 key heads, D 128; any B, M, N; keep j <= i or j < prefix[b]"
std::string summary(const spec::Form& form);

}  // namespace kw::driver
