// Where the project's own files are: the device vocabulary, the corpus, the Python package.
//
// In order: KERNELWRIGHT_HOME, the folders above the running executable (a build tree in a clone),
// and share/kernelwright beside its bin/ (packaging/install.cmake). A folder counts when it holds
// cuda/kw/kw.cuh. The Python package is in its python/, or, in a wheel, is what it lies in itself:
// site-packages/kernelwright/share/kernelwright.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace kw::driver {

struct Home {
  std::filesystem::path root;
  std::filesystem::path own_vocabulary = {};  // of a kernel that brings its own kw/

  std::filesystem::path vocabulary() const {  // holds kw/
    return own_vocabulary.empty() ? root / "cuda" : own_vocabulary;
  }
  std::filesystem::path kernels() const { return root / "kernels"; }
  std::filesystem::path python() const;  // holds kernelwright/
};

// Reports driver.home with the places that were tried.
std::optional<Home> find_home(Diagnostics& diagnostics);

// A program of ours in the folder of this one.
std::string beside(const char* program);

// libkernelwright_launch.so: KERNELWRIGHT_LAUNCH, an installation's lib/, a build tree's. Reports
// driver.library with the places that were tried.
std::optional<std::filesystem::path> launch_library(Diagnostics& diagnostics);

// The Python that has PyTorch: KERNELWRIGHT_PYTHON, the home's .venv, VIRTUAL_ENV, python3.
std::string find_python(const Home& home);

// site-packages of that Python, where libclang and NVRTC may live; empty when it cannot be asked.
std::filesystem::path site_packages(const std::string& python);

// Reports driver.target, naming the targets that there are (support/targets.h).
bool known_target(const std::string& target, Diagnostics& diagnostics);

// The expert kernel for a target: sm_90a -> kernels/sm90/attention_fwd.cu. Reports driver.target,
// also for a target that has none.
std::optional<std::filesystem::path> corpus_kernel(const Home& home, const std::string& target,
                                                   Diagnostics& diagnostics);

// Every file of kw/, as (name that #include spells, text).
std::vector<std::pair<std::string, std::string>> vocabulary_files(const Home& home);

}  // namespace kw::driver
