// What the stages need from the machine: the project's files, a Python with PyTorch, libclang.
#pragma once
#include <optional>
#include <string>

#include "compile/nvrtc.h"
#include "driver/environment/home.h"
#include "lift/clang.h"
#include "operator/capture/capture.h"

namespace kw::driver {

struct Tools {
  Home home;
  std::string python;
  lift::Toolchain clang;
};

std::optional<Tools> find_tools(Diagnostics& diagnostics);

// Runs the Python process, isolated (sandbox.h), puts what it wrote into `request.out` and loads it
// (capture.cpp). The user's mistakes come back as diagnostics in the user's file; a process that
// dies is internal.capture with its last words.
std::optional<spec::Capture> capture(const Tools& tools, const spec::CaptureRequest& request,
                                     Diagnostics& diagnostics);

// A spec as commands take it: a Python file (captured into `request.out`, or a temporary folder) or
// a folder that capture wrote.
std::optional<spec::Capture> open_spec(const Tools& tools, const spec::CaptureRequest& request,
                                       Diagnostics& diagnostics);

struct Built {
  std::string cubin;
  runtime::EntryResources resources;
  std::string compiler;  // "NVRTC 13.0"
  double seconds = 0;
};

// Compiles with the device vocabulary from memory and audits the cubin: exactly `entry`, no memory
// of its own, nothing undefined, `parameter_bytes` of arguments where that is known (not 0).
// `extra` are further options of NVRTC.
std::optional<Built> build(const Tools& tools, const SourcePtr& kernel, const std::string& target,
                           const std::vector<std::string>& entries, int64_t parameter_bytes,
                           Diagnostics& diagnostics, const std::vector<std::string>& extra = {});

// 70 when a diagnostic's code begins with "internal.", else 2.
Exit exit_for(const Diagnostics& diagnostics);

}  // namespace kw::driver
