#include "support/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace kw {
namespace {

// Reads lines until the child closes its end; false when it was silent for the limit.
bool listen(int fd, double limit_seconds, const std::function<void(const std::string&)>& take) {
  std::string pending;
  char buffer[65536];
  while (true) {
    pollfd polled{fd, POLLIN, 0};
    const int ready = poll(&polled, 1, static_cast<int>(limit_seconds * 1000));
    if (ready == 0) return false;
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n <= 0) return true;
    pending.append(buffer, n);
    for (size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1))
      take(pending.substr(0, end));
  }
}

}  // namespace

ChildEnd watch_child(const std::function<int(int fd)>& work,
                     const std::function<void(const std::string&)>& take, double limit_seconds) {
  ChildEnd end;
  int ends[2];
  if (pipe(ends)) return end;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    _exit(work(ends[1]));
  }
  close(ends[1]);
  if (child > 0) {
    end.started = true;
    end.silent = !listen(ends[0], limit_seconds, take);
    if (end.silent) kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status) && !end.silent) end.signal = WTERMSIG(status);
  }
  close(ends[0]);
  return end;
}

void send_line(int fd, const std::string& line) {
  const std::string text = line + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = write(fd, text.data() + sent, text.size() - sent);
    if (n < 0 && errno != EINTR) _exit(70);
    if (n > 0) sent += n;
  }
}

}  // namespace kw
