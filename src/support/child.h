// A child process of the same program, for work that may hang or take the process with it.
//
// The child sends lines; the parent takes each as it comes and kills the child when it is silent
// for too long. What uses a GPU runs like this: a kernel may hang, or break its context for good.
#pragma once
#include <functional>
#include <string>

namespace kw {

struct ChildEnd {
  bool started = false;  // there was a process
  bool silent = false;   // it was killed, because it sent nothing for the limit
  int signal = 0;        // what it died of, when nobody here killed it
  int exit_code = 0;     // when it ended by itself
};

// Forks. The child calls `work` with the descriptor to send to, and exits with what that returns;
// the parent calls `dynamic_tiles` with each line, without its newline. Call it while no other
// thread runs.
ChildEnd watch_child(const std::function<int(int fd)>& work,
                     const std::function<void(const std::string& line)>& take,
                     double limit_seconds);

// Writes a line and its newline, whole; ends the process if nobody reads.
void send_line(int fd, const std::string& line);

}  // namespace kw
