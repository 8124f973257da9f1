// fork and exec with three pipes, polled until both outputs close or the time is up.
#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace kw {
namespace {

using Clock = std::chrono::steady_clock;

// Reads what is there; false once the other side has closed.
bool drain(int fd, std::string& into) {
  char buffer[65536];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n > 0) into.append(buffer, n);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& argv, const std::string& input,
                          double timeout_seconds) {
  ProcessResult result;
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
    result.err = std::string("no pipe: ") + strerror(errno);
    return result;
  }
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    result.err = std::string("no process: ") + strerror(errno);
    return result;
  }
  if (child == 0) {
    setpgid(0, 0);
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
  fcntl(in[1], F_SETFL, O_NONBLOCK);

  const Clock::time_point stop =
      Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000));
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
    if (left <= 0) {
      result.timed_out = true;
      kill(-child, SIGKILL);
      break;
    }
    if (poll(polled, 3, static_cast<int>(left)) < 0 && errno != EINTR) break;
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
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace kw
