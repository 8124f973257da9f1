// The prover's self-test: kernels with planted bugs, each of which must be refuted.
//
// FOLDER (of `kernelwright self-test --write`) holds self_test.json, prove.json with the probes and
// a folder for each kernel, kernels/NAME/{kernel.cubin, launch.json}:
//
//   { "target": "sm_90", "kernels": [
//       {"name": "right", "about": "no bug", "expect": "holds"},
//       {"name": "history_truncated", "about": "...", "expect": "refuted", "from": 4096} ] }
//
// The cases of prove.json are grouped by their number of keys N. A planted bug must be refuted by
// some case at every N from `from` on (absent: at all); the right kernel must hold in every case.
// A bug that gets through, or a right kernel that does not, fails the self-test, and then nothing
// is certified by this build with this driver on this GPU.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "runtime/launch/launch_spec.h"

namespace kw::prove {

// Returns the exit code: 0 passed, 1 failed, 2 the folder is at fault, 3 there is no GPU.
int run_self_test(const std::string& folder, double limit_seconds, bool json);

// Why a kernel without findings does not hold yet, for {gpu, driver}: in words with the command to
// run, ending with a newline; empty when the self-test of this build has passed here.
std::string doubt_of(const nlohmann::json& machine);

// FOLDER/launch.json. Reports launch.folder and what read_launch_spec reports.
std::optional<runtime::LaunchSpec> read_launch(const std::string& folder, Diagnostics& diagnostics);

}  // namespace kw::prove
