// Where a specification runs: in bubblewrap, where that works here, else as the user.
//
// A specification is a Python file, and to capture it is to run it. bubblewrap (the program
// `bwrap`) runs it in namespaces of its own: no network, no process but its own in sight, a /tmp
// and a /run that are empty and go away with it, everything else read-only but for the folder that
// the capture is written into. Home directories can be read: the file, what it imports and the
// Python that runs it lie there. docs/deployment/isolation.md says what that keeps out and what
// not.
//
// Whether namespaces can be made is the kernel's, the distribution's and the container's affair,
// and nothing tells it but a trial; one a process, of some milliseconds. Where it fails a
// specification runs without, as ever; who would rather have none then says
// KERNELWRIGHT_ISOLATION=bubblewrap.
//
// Limits hold either way: of time, of memory, of processes and threads (support/process.h).
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/diagnostic.h"
#include "support/process.h"

namespace kw::driver {

struct Sandbox {
  std::vector<std::string> prefix;  // of every command; empty where there is no sandbox
  std::string version;              // "bubblewrap 0.8.0"
  std::string why_not;              // why there is none: "bwrap is not on the PATH"

  bool isolates() const { return !prefix.empty(); }

  // `command` within it: `writable` can be written, and each of `readable` is there although it may
  // lie below a folder that is hidden. Without a sandbox `command` itself.
  std::vector<std::string> around(const std::vector<std::string>& command,
                                  const std::filesystem::path& writable,
                                  const std::vector<std::filesystem::path>& readable) const;
};

// By KERNELWRIGHT_ISOLATION: `none`, `bubblewrap`, or unset for bubblewrap where it works. Reports
// driver.isolation for another value, and where bubblewrap is asked for and does not work.
std::optional<Sandbox> find_sandbox(Diagnostics& diagnostics);

// What a capture may take: 120 s, 64 processes, 4096 threads, and 32 GiB of memory or three
// quarters of what the machine has, if that is less.
ProcessLimits capture_limits();

}  // namespace kw::driver
