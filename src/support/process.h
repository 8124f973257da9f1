// Running another program and waiting for it.
//
// What is started does not outlive who started it: the child dies with the thread that waits for it
// (the kernel's own promise, PR_SET_PDEATHSIG), and its process group is killed when it has ended,
// when it ran past a limit, and so with all that it left behind there.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kw {

struct ProcessResult {
  int exit_code = -1;      // 128 + signal when it was killed by one; 127 when it could not start
  bool timed_out = false;  // it was killed because it ran past the limit of time
  std::string exceeded;    // another limit that it was killed at: "more than 64 processes"
  std::string out, err;    // what it wrote
};

// What a child and its descendants may take. 0: no limit.
struct ProcessLimits {
  double seconds = 600;
  // Of each process's private memory, asked for or touched (RLIMIT_DATA: an allocation fails, which
  // a program can say); of each file; and of what all of them together have in memory, files in
  // memory among it (process_memory.h).
  uint64_t memory_bytes = 0;
  int processes = 0, threads = 0;
  std::function<void(pid_t group)> started;  // told the child's process group
};

// Runs argv[0] (found on PATH) with `input` as its standard input. No shell is involved. The child
// leads a process group of its own.
ProcessResult run_process(const std::vector<std::string>& argv, const std::string& input,
                          const ProcessLimits& limits);
ProcessResult run_process(const std::vector<std::string>& argv, const std::string& input = {},
                          double timeout_seconds = 600);

// "17 GiB"
std::string gigabytes(uint64_t bytes);

}  // namespace kw
