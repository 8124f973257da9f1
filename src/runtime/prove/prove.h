// One case of prove.json on the GPU: does this kernel give what it must, and touch nothing else?
//
// Two halves. observe_case() launches, from poisoned outputs, several times on the same inputs and,
// if the case is timed, on changed ones; it knows no truth. judge_case() holds what was seen
// against the goldens and needs no GPU. A prover runs them in two processes. Findings, by their
// code:
//   prove.fault      the launch ends in an error of the driver (the context is lost with it)
//   prove.guard      memory outside a tensor was written
//   prove.unwritten  an element of an output still holds the canary
//   prove.nan        an output holds a NaN where no golden does
//   prove.error      a sampled row is further from the truth than is accepted
//   prove.window     an entry of the attention matrix is (see judge.h)
//   prove.input      an input was changed
//   prove.repeat     a later launch on the same inputs gives other bits
//   prove.replay     a timed launch does not give what its own inputs ask for
//   launch.workspace a workspace is not zero afterwards
//   prove.seed       an input is stored for another seed than is asked for (exit 2)
// Any of the others refutes. Without goldens (none given, or drawn from another seed) a case that
// has no finding is inconclusive, never more; so is one with a time that no such GPU can reach
// (prove.floor, a warning).
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "runtime/launch/launch.h"
#include "runtime/prove/prove_spec.h"

namespace kw::runtime {

struct ProveOptions {
  std::optional<uint64_t> seed;  // instead of every case's own; goldens then do not apply
  bool cold = true;              // L2 is overwritten before each timed launch
};

// What one case's launches left.
struct Observation {
  Exit end = Exit::own_fault;  // holds: everything was launched; refuted, bad_input: it ended there
  bool context_lost = false;   // no further case can be observed in this process
  std::shared_ptr<const nlohmann::json> findings;  // an array of diagnostics
  std::shared_ptr<const nlohmann::json> time;      // {l2, launches, median_ms, ...}, or null
  std::vector<std::string_view> outputs;           // after the first launch, in launch.json's order
  std::vector<std::string> memory;                 // of the outputs, where nobody else keeps it
};

// `keep`, when not null, is where the outputs are copied to, one after another.
Observation observe_case(const Kernel& kernel, const ProveCase& asked, const ProveOptions& options,
                         char* keep);
// The bytes of a case's outputs.
int64_t output_bytes(const LaunchSpec& launch, const ProveCase& asked);

struct CaseResult {
  Exit verdict = Exit::own_fault;
  bool context_lost = false;
  // name, verdict, seed, findings, goldens: [{output, rows, worst_ratio, worst_error, accepted,
  // worst_index}], time when timed.
  std::shared_ptr<const nlohmann::json> facts;
};

CaseResult judge_case(const LaunchSpec& launch, const ProveCase& asked, const ProveOptions& options,
                      const Observation& seen);

// Both, in one process.
CaseResult prove_case(const Kernel& kernel, const ProveCase& asked, const ProveOptions& options);

// "holds", "refuted", "bad_input", "inconclusive", "own_fault".
const char* verdict_name(Exit verdict);

}  // namespace kw::runtime
