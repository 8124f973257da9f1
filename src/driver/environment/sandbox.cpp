#include "driver/environment/sandbox.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

// Others' sockets and temporary files: /run has those through which a user commands the machine's
// services, and a read-only file system does not keep one from connecting.
constexpr const char* kHidden[] = {"/tmp", "/run"};

// Of its /tmp, which lies in memory and counts to no process.
constexpr const char* kMostTemporary = "4294967296";

std::vector<std::string> prefix(bool sized) {
  std::vector<std::string> out = {"bwrap",
                                  "--unshare-all",
                                  "--die-with-parent",
                                  "--new-session",
                                  "--cap-drop",
                                  "ALL",
                                  "--ro-bind",
                                  "/",
                                  "/",
                                  "--dev",
                                  "/dev",
                                  "--proc",
                                  "/proc"};
  for (const char* folder : kHidden) {
    if (sized) out.insert(out.end(), {"--size", kMostTemporary});
    out.insert(out.end(), {"--tmpfs", folder});
  }
  return out;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// What a trial says.
Sandbox tried() {
  const ProcessResult asked = run_process({"bwrap", "--version"}, {}, 10);
  if (asked.exit_code == 127) return {{}, "", "bwrap is not on the PATH"};
  ProcessResult trial;
  for (const bool sized : {true, false}) {  // --size came with bubblewrap 0.7
    const Sandbox sandbox{prefix(sized), first_line(asked.out), ""};
    trial = run_process(sandbox.around({"true"}, "", {}), {}, 10);
    if (trial.exit_code == 0) return sandbox;
  }
  return {{}, "", fmt::format("bwrap cannot run here: {}", first_line(trial.err))};
}

bool below(const fs::path& path, const fs::path& folder) {
  const fs::path rest = path.lexically_relative(folder);
  return !rest.empty() && rest != "." && *rest.begin() != "..";
}

// Each path as it is written and as it is, where a hidden folder hides it. What lies below another
// comes with that one; and only so, since where a bound folder has a link nothing can be mounted.
std::vector<std::string> hidden(const std::vector<fs::path>& paths) {
  std::error_code failed;
  std::set<fs::path> ways;  // a folder before what is in it
  for (const fs::path& path : paths)
    for (const fs::path& way :
         {fs::absolute(path, failed).lexically_normal(), fs::weakly_canonical(path, failed)})
      for (const char* folder : kHidden)
        if (below(way, folder)) ways.insert(way);
  std::vector<std::string> out;
  for (const fs::path& way : ways)
    if (out.empty() || !below(way, out.back())) out.push_back(way.string());
  return out;
}

}  // namespace

std::vector<std::string> Sandbox::around(const std::vector<std::string>& command,
                                         const fs::path& writable,
                                         const std::vector<fs::path>& readable) const {
  if (!isolates()) return command;
  std::vector<std::string> out = prefix;
  for (const std::string& way : hidden(readable))
    out.insert(out.end(), {"--ro-bind-try", way, way});
  if (!writable.empty()) out.insert(out.end(), {"--bind", writable.string(), writable.string()});
  out.push_back("--");
  out.insert(out.end(), command.begin(), command.end());
  return out;
}

std::optional<Sandbox> find_sandbox(Diagnostics& diagnostics) {
  const char* set = std::getenv("KERNELWRIGHT_ISOLATION");
  const std::string asked = set ? set : "";
  if (asked == "none") return Sandbox{{}, "", "KERNELWRIGHT_ISOLATION is none"};
  if (!asked.empty() && asked != "bubblewrap") {
    diagnostics
        .error("driver.isolation", {},
               fmt::format("KERNELWRIGHT_ISOLATION is '{}'; it can be none or bubblewrap", asked))
        .hint = "unset, it means bubblewrap where that works";
    return std::nullopt;
  }
  static const Sandbox here = tried();
  if (here.isolates() || asked.empty()) return here;
  diagnostics
      .error("driver.isolation", {},
             fmt::format("KERNELWRIGHT_ISOLATION asks for bubblewrap, and {}", here.why_not))
      .hint =
      "install bubblewrap and let it make namespaces (docs/deployment/isolation.md); or "
      "unset the variable, and specifications run with your rights";
  return std::nullopt;
}

ProcessLimits capture_limits() {
  ProcessLimits limits;
  limits.seconds = 120;
  limits.processes = 64;
  limits.threads = 4096;
  const uint64_t machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  limits.memory_bytes = std::min<uint64_t>(uint64_t{32} << 30, machine / 4 * 3);
  return limits;
}

}  // namespace kw::driver
