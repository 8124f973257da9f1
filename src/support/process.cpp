// fork and exec with three pipes, polled until both outputs close or a limit is passed.
#include "support/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "support/process_memory.h"
#include "support/process_tree.h"

namespace kw {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLook = 100;  // milliseconds between two looks at what the child has become

// Open at once, of one process: what waits in a pipe or a socket is in no process's memory.
constexpr rlim_t kMostFiles = 4096;

// Reads what is there; false once the other side has closed.
bool drain(int fd, std::string& into) {
  char buffer[65536];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n > 0) into.append(buffer, n);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

// The limit that the child's tree is beyond, if one.
std::string exceeded(pid_t child, const ProcessLimits& limits, MemoryWatch& memory) {
  const ProcessTree tree = process_tree(child);
  if (limits.processes && static_cast<int>(tree.processes.size()) > limits.processes)
    return fmt::format("more than {} processes", limits.processes);
  if (limits.threads && tree.threads > limits.threads)
    return fmt::format("more than {} threads", limits.threads);
  if (limits.memory_bytes && memory.beyond(tree, limits.memory_bytes))
    return fmt::format("more than {} of memory", gigabytes(limits.memory_bytes));
  return "";
}

// In the child, before it becomes the program.
void limit_oneself(pid_t parent, const ProcessLimits& limits) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it ended before we could say so
  // A descendant whose parent has ended is then its child, and stays in sight.
  if (limits.processes) prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!limits.memory_bytes) return;
  const rlimit memory{limits.memory_bytes, limits.memory_bytes};
  setrlimit(RLIMIT_DATA, &memory);
  setrlimit(RLIMIT_FSIZE, &memory);
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_max = std::min(files.rlim_max, kMostFiles);
  files.rlim_cur = std::min(files.rlim_cur, files.rlim_max);
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

std::string gigabytes(uint64_t bytes) { return fmt::format("{:.3g} GiB", bytes / 0x1p30); }

ProcessResult run_process(const std::vector<std::string>& argv, const std::string& input,
                          double timeout_seconds) {
  ProcessLimits limits;
  limits.seconds = timeout_seconds;
  return run_process(argv, input, limits);
}

ProcessResult run_process(const std::vector<std::string>& argv, const std::string& input,
                          const ProcessLimits& limits) {
  ProcessResult result;
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
    result.err = std::string("no pipe: ") + strerror(errno);
    return result;
  }
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    result.err = std::string("no process: ") + strerror(errno);
    return result;
  }
  if (child == 0) {
    limit_oneself(parent, limits);
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    execvp(args[0], args.data());
    dprintf(2, "%s: %s\n", args[0], strerror(errno));
    _exit(127);
  }
  setpgid(child, child);
  close(in[0]);
  close(out[1]);
  close(err[1]);
  signal(SIGPIPE, SIG_IGN);
  if (limits.started) limits.started(child);
  fcntl(in[1], F_SETFL, O_NONBLOCK);

  const Clock::time_point stop =
      Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(limits.seconds * 1000));
  const bool watched = limits.processes || limits.threads || limits.memory_bytes;
  MemoryWatch memory;
  Clock::time_point next_look = Clock::now();
  size_t sent = 0;
  bool in_open = true, out_open = true, err_open = true;
  while (out_open || err_open) {
    if (in_open && sent == input.size()) {
      close(in[1]);
      in_open = false;
    }
    pollfd polled[3] = {{out_open ? out[0] : -1, POLLIN, 0},
                        {err_open ? err[0] : -1, POLLIN, 0},
                        {in_open ? in[1] : -1, POLLOUT, 0}};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(stop - Clock::now()).count();
    if (watched && left > 0 && Clock::now() >= next_look) {
      result.exceeded = exceeded(child, limits, memory);
      next_look = Clock::now() + std::chrono::milliseconds(kLook);
    }
    if (left <= 0 || !result.exceeded.empty()) {
      result.timed_out = left <= 0;
      kill_tree(child);
      break;
    }
    const int64_t most = watched ? std::min<int64_t>(left, kLook) : left;
    if (poll(polled, 3, static_cast<int>(most)) < 0 && errno != EINTR) break;
    if (polled[0].revents) out_open = drain(out[0], result.out);
    if (polled[1].revents) err_open = drain(err[0], result.err);
    if (in_open && polled[2].revents) {
      const ssize_t n = write(in[1], input.data() + sent, input.size() - sent);
      if (n > 0) sent += n;
      if (n < 0 && errno != EAGAIN && errno != EINTR) {
        close(in[1]);
        in_open = false;
      }
    }
  }
  if (in_open) close(in[1]);
  close(out[0]);
  close(err[0]);
  // Not reaped yet, it keeps its number, and no other group has it.
  siginfo_t ended;
  while (waitid(P_PID, child, &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace kw
