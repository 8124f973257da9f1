// CUDA text to a cubin, by NVRTC, with the findings that make a cubin unfit as errors.
//
// NVRTC comes with PyTorch's own packages or with a CUDA toolkit; it is looked for in this order:
//   1. the environment variable KERNELWRIGHT_NVRTC, the path of a libnvrtc.so
//   2. PyTorch's packages: site-packages/nvidia/{cu13,cuda_nvrtc}/lib of the given Python, else of
//      VIRTUAL_ENV, else of the python3 on PATH
//   3. a CUDA toolkit: CUDA_HOME, /usr/local/cuda, and what the dynamic linker knows
//
// A compilation that ends well is still refused when it spills more than some registers or when
// ptxas remarks that it lost performance: a kernel that is half as fast as its text promises is a
// failure.
//
// Constants at namespace scope: NVRTC emits every constexpr variable as an initialised global, used
// or not. `dead_globals` are those that no instruction names, so that the audit can tell them from
// state (see cubin.h).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/compile_log.h"
#include "support/diagnostic.h"

namespace kw::runtime {

struct Header {
  std::string name;  // "kw/ops/wgmma.cuh": as the kernel spells it, or relative to another header
  std::string text;
};

// Bytes of a thread that may be spilled: values that wait while others are in use, set before a
// loop and read behind it, cost nothing. On an H200 gradients with 20 bytes of them are as fast as
// with none.
inline constexpr int kParkedBytes = 32;

struct Compiled {
  std::string cubin;  // an ELF image
  std::string ptx;
  std::string log;
  std::vector<EntryResources> entries;
  std::vector<std::string> dead_globals;
  double seconds = 0;
};

class Nvrtc {
 public:
  // `python` is an interpreter whose packages are searched; empty: see above. Reports
  // build.no_nvrtc, with every place that was tried, and returns nothing when there is none.
  static std::optional<Nvrtc> find(const std::string& python, Diagnostics& diagnostics);

  const std::string& path() const;
  std::string version() const;  // "13.0"

  // Compiles `kernel` with `headers` from memory for `target` ("sm_90a"). `extra` are further
  // options of NVRTC, as "-DKW_EXACT". Errors: build.compile with the line in the kernel or header,
  // build.target, build.spill, build.performance_loss.
  std::optional<Compiled> compile(const SourcePtr& kernel, const std::vector<Header>& headers,
                                  const std::string& target, const std::vector<std::string>& extra,
                                  Diagnostics& diagnostics) const;

 private:
  struct Library;
  std::shared_ptr<const Library> library_;
};

// The places where libnvrtc is looked for, in order; bare names are left to the dynamic linker.
std::vector<std::string> nvrtc_candidates(const std::string& python);

// `text` with each #include that names one of `headers` relative to the folder of `name` spelt as
// that header's own name.
std::string with_full_includes(const std::string& name, const std::string& text,
                               const std::vector<Header>& headers);

// The .global variables of a PTX text that nothing but their own definition names.
std::vector<std::string> dead_globals(std::string_view ptx);

}  // namespace kw::runtime
