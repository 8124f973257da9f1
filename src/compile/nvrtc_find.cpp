// Where libnvrtc may lie. The names differ by CUDA version and by who packaged it, so each folder
// is listed and the newest library in it is taken.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "compile/nvrtc.h"

namespace kw::runtime {
namespace {
namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Sorted, so that the answer does not depend on the order in a directory.
std::vector<fs::path> children(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// Every libnvrtc.so* of a folder, newest first. libnvrtc.alt.so is a build with other trade-offs
// and libnvrtc-builtins.so a part of NVRTC: neither begins with the name that is asked for.
void add_folder(const fs::path& folder, std::vector<std::string>& candidates) {
  std::vector<std::string> names;
  for (const fs::path& file : children(folder))
    if (file.filename().string().rfind("libnvrtc.so", 0) == 0) names.push_back(file.string());
  candidates.insert(candidates.end(), names.rbegin(), names.rend());
}

// PREFIX/lib/python3.N/{site,dist}-packages/nvidia/{cu13,cuda_nvrtc}/lib
void add_prefix(const fs::path& prefix, std::vector<std::string>& candidates) {
  for (const fs::path& python : children(prefix / "lib")) {
    if (python.filename().string().rfind("python3", 0) != 0) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      for (const char* wheel : {"cu13", "cuda_nvrtc"})
        add_folder(python / packages / "nvidia" / wheel / "lib", candidates);
  }
}

std::string python_on_path() {
  std::istringstream folders(environment("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::error_code none; fs::exists(fs::path(folder) / "python3", none))
      return folder + "/python3";
  return "";
}

}  // namespace

std::vector<std::string> nvrtc_candidates(const std::string& python) {
  std::vector<std::string> candidates;
  if (const std::string chosen = environment("KERNELWRIGHT_NVRTC"); !chosen.empty())
    return {chosen};  // who names one wants that one and no other

  // A virtual environment's python is a link to the system's: its own path tells the prefix.
  const std::string virtual_env = environment("VIRTUAL_ENV");
  const std::string interpreter = !python.empty() ? python : python_on_path();
  if (python.empty() && !virtual_env.empty()) add_prefix(virtual_env, candidates);
  if (!interpreter.empty())
    add_prefix(fs::absolute(interpreter).lexically_normal().parent_path().parent_path(),
               candidates);

  for (const std::string& root :
       {environment("CUDA_HOME"), environment("CUDA_PATH"), std::string("/usr/local/cuda")})
    if (!root.empty())
      for (const char* lib : {"lib64", "lib", "targets/x86_64-linux/lib"})
        add_folder(fs::path(root) / lib, candidates);
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    candidates.push_back(name);
  return candidates;
}

}  // namespace kw::runtime
