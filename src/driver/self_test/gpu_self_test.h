// Writes what `kernelwright-prove --self-test` runs: kernels with planted bugs, and the probes.
//
// The bugs are edits (support/edits.h) of the CUDA text that `make` gives for
// self_test/attention.py from the Ampere-class kernel, which every GPU of ours runs:
// self_test/*.edit. A planted bug is compiled like any kernel, but what it lacks (registers) is no
// matter.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "driver/environment/tools.h"

namespace kw::driver {

struct GpuSelfTestOptions {
  std::string target = "sm_90";
  std::vector<int64_t> lengths = {512, 2048, 8192, 32768, 131072};  // keys
  std::vector<std::string> only;                                    // names of bugs; empty: all
};

// Replaces `folder`. `say` gets a line for each kernel. Reports what it cannot write, edit.*,
// build.* and self_test.name for a bug that there is not.
bool write_gpu_self_test(const Tools& tools, const std::filesystem::path& folder,
                         const GpuSelfTestOptions& options,
                         const std::function<void(const std::string&)>& say,
                         Diagnostics& diagnostics);

}  // namespace kw::driver
