// Running another program and waiting for it.
#pragma once
#include <string>
#include <vector>

namespace kw {

struct ProcessResult {
  int exit_code = -1;      // 128 + signal when it was killed by one; 127 when it could not start
  bool timed_out = false;  // it was killed because it ran past the limit
  std::string out, err;    // what it wrote
};

// Runs argv[0] (found on PATH) with `input` as its standard input. No shell is involved. The child
// leads a process group of its own, and the whole group is killed after `timeout_seconds`.
ProcessResult run_process(const std::vector<std::string>& argv, const std::string& input = {},
                          double timeout_seconds = 600);

}  // namespace kw
