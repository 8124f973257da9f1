// One case of prove.json on the GPU: does this kernel give what it must, and touch nothing else?
//
// Each case is launched twice from poisoned outputs, then timed if asked. Findings, by their code:
//   prove.fault      the launch ends in an error of the driver (the context is lost with it)
//   prove.guard      memory outside a tensor was written
//   prove.unwritten  an element of an output still holds the canary
//   prove.nan        an output holds a NaN where no golden does
//   prove.error      a sampled row is further from the truth than is accepted
//   prove.input      an input was changed
//   prove.repeat     a later launch on the same inputs gives other bits
//   launch.workspace a workspace is not zero afterwards
// Any of them refutes. Without goldens (none given, or drawn from another seed) a case that has no
// finding is inconclusive, never more.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "runtime/launch.h"
#include "runtime/prove_spec.h"

namespace kw::runtime {

struct ProveOptions {
  std::optional<uint64_t> seed;  // instead of every case's own; goldens then do not apply
  bool cold = true;              // L2 is overwritten before each timed launch
};

struct CaseResult {
  Exit verdict = Exit::own_fault;
  bool context_lost = false;  // no further case can be judged in this process
  // name, verdict, seed, findings, goldens: [{output, rows, worst_ratio, worst_error, accepted,
  // worst_index}], time: {l2, launches, median_ms, min_ms, tflops} when timed.
  std::shared_ptr<const nlohmann::json> facts;
};

CaseResult prove_case(const Kernel& kernel, const ProveCase& asked, const ProveOptions& options);

// "holds", "refuted", "bad_input", "inconclusive", "own_fault".
const char* verdict_name(Exit verdict);

}  // namespace kw::runtime
