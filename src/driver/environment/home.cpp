#include "driver/environment/home.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "support/targets.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

bool is_home(const fs::path& p) { return fs::exists(p / "cuda" / "kw" / "kw.cuh"); }

}  // namespace

std::optional<Home> find_home(Diagnostics& diagnostics) {
  std::vector<fs::path> tried;
  if (const char* set = std::getenv("KERNELWRIGHT_HOME")) tried.push_back(set);
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  for (fs::path p = self.parent_path(); !p.empty() && p != p.root_path(); p = p.parent_path()) {
    tried.push_back(p);
    tried.push_back(p / "share" / "kernelwright");
  }
  for (const fs::path& p : tried)
    if (is_home(p)) return Home{p};
  Diagnostic& d = diagnostics.error(
      "driver.home", {}, "the device vocabulary (cuda/kw/kw.cuh) is not beside this executable");
  d.hint = "set KERNELWRIGHT_HOME to a folder that holds cuda/, kernels/ and python/";
  return std::nullopt;
}

fs::path Home::python() const {
  const auto has_package = [](const fs::path& p) {
    return fs::exists(p / "kernelwright" / "capture" / "__main__.py");
  };
  for (fs::path p = root; !has_package(root / "python") && p != p.root_path(); p = p.parent_path())
    if (has_package(p)) return p;
  return root / "python";
}

std::string beside(const char* program) {
  std::error_code failed;
  return (fs::read_symlink("/proc/self/exe", failed).parent_path() / program).string();
}

std::optional<fs::path> launch_library(Diagnostics& diagnostics) {
  const std::string name = "libkernelwright_launch.so";
  const fs::path here = fs::path(beside("")).parent_path();
  std::vector<fs::path> places = {here.parent_path() / "lib" / name,
                                  here / "src/runtime/c_abi" / name};
  if (const char* set = std::getenv("KERNELWRIGHT_LAUNCH")) places = {set};
  std::string tried;
  for (const fs::path& place : places) {
    if (fs::exists(place)) return place;
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  diagnostics.error("driver.library", {}, name + " is in none of: " + tried).hint =
      "set KERNELWRIGHT_LAUNCH to the library";
  return std::nullopt;
}

std::string find_python(const Home& home) {
  if (const char* set = std::getenv("KERNELWRIGHT_PYTHON")) return set;
  const fs::path own = home.root / ".venv" / "bin" / "python";
  if (fs::exists(own)) return own.string();
  if (const char* active = std::getenv("VIRTUAL_ENV"))
    return (fs::path(active) / "bin" / "python").string();
  return "python3";
}

fs::path site_packages(const std::string& python) {
  const fs::path lib = fs::path(python).parent_path().parent_path() / "lib";
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(lib, failed)) {
    const fs::path packages = entry.path() / "site-packages";
    if (fs::exists(packages)) return packages;
  }
  return {};
}

bool known_target(const std::string& target, Diagnostics& diagnostics) {
  if (find_target(target)) return true;
  Diagnostic& d =
      diagnostics.error("driver.target", {},
                        fmt::format("no target '{}'; the targets are {}", target, target_names()));
  for (const TargetLimits& t : targets())
    d.hint += fmt::format("{}{} is {}", d.hint.empty() ? "" : "; ", t.name, t.gpus);
  return false;
}

std::optional<fs::path> corpus_kernel(const Home& home, const std::string& target,
                                      Diagnostics& diagnostics) {
  if (!known_target(target, diagnostics)) return std::nullopt;
  if (find_target(target)->folder.empty()) {
    diagnostics.error("driver.target", {},
                      fmt::format("no expert kernel for target '{}'; there is one for {}", target,
                                  target_names(true)));
    return std::nullopt;
  }
  return home.kernels() / find_target(target)->folder / "attention_fwd.cu";
}

std::vector<std::pair<std::string, std::string>> vocabulary_files(const Home& home) {
  std::vector<std::pair<std::string, std::string>> files;
  const bool own = !home.own_vocabulary.empty();  // a link in it could lead to any file
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(home.vocabulary() / "kw"))
    if (entry.is_regular_file() && !(own && entry.is_symlink()))
      files.emplace_back(fs::relative(entry.path(), home.vocabulary()).string(),
                         read_source(entry.path().string())->text);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace kw::driver
