// A made kernel as a repository for Hugging Face's `kernels` library.
//
//   DIR/  README.md                              what the Hub shows
//         build/torch-stable-abi29-cu130-x86_64-linux/
//           __init__.py  metadata.json           the module that `kernels` imports
//           exported.py  launch.py  library.py ...  of our Python package, what launching takes
//           libkernelwright_launch.so
//           kernel/  kernel.cubin  launch.json  certificate.json  signature.json
//
// `kernels` picks a folder of build/ by its name and imports it under a name of its own, so that
// several versions live in one process; all imports in it are relative. The name says what the
// folder needs: nothing of PyTorch's C++ (its stable interface of 2.9 or newer is the loosest that
// the naming knows), a CUDA driver of the major version that the cubin was compiled for, and this
// machine's kind of processor. Source: Hugging Face, "Kernel requirements", and the variants that
// kernels 0.17 reads.
#pragma once
#include <string>

#include "driver/environment/tools.h"

namespace kw::driver {

struct ExportOptions {
  std::string folder;  // that make wrote
  std::string to;      // the repository's folder; replaced if it is one that was exported before
  int version = 1;     // of the exported kernel, as the Hub counts: v1, v2, ...
};

// Reports export.folder (not what make wrote, or changed since: the certificate's hashes say),
// export.verdict (its verdict is not "holds"), export.to and driver.library.
bool export_hf(const ExportOptions& options, Diagnostics& diagnostics);

}  // namespace kw::driver
