#include "support/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace kw {
namespace fs = std::filesystem;

bool write_file(const fs::path& path, std::string_view text) {
  const fs::path beside = path.string() + "." + std::to_string(getpid()) + ".part";
  FILE* file = fopen(beside.c_str(), "wb");
  if (!file) return false;
  const bool written = fwrite(text.data(), 1, text.size(), file) == text.size();
  if (fclose(file) != 0 || !written || rename(beside.c_str(), path.c_str()) != 0) {
    unlink(beside.c_str());
    return false;
  }
  return true;
}

StagedFolder::StagedFolder(fs::path target) : target_(std::move(target)) {
  const fs::path parent = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
  staging_ = parent / fmt::format(".{}.{}", target_.filename().string(), getpid());
  std::error_code failed;
  fs::remove_all(staging_, failed);
  fs::create_directories(staging_, failed);
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(staging_, ignored);
}

// A folder that is there is exchanged in one step, so at no moment is there none.
bool StagedFolder::commit() {
  if (renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
    std::error_code failed;  // some network file systems cannot exchange
    if (errno == EINVAL) fs::remove_all(target_, failed);
    if (rename(staging_.c_str(), target_.c_str()) != 0) return false;
  }
  committed_ = true;
  std::error_code ignored;
  fs::remove_all(staging_, ignored);  // after an exchange: the old one
  return true;
}

std::string too_long(const fs::path& path) {
  const size_t added = fmt::format("..{}", getpid()).size();  // what a staging folder's name has
  std::error_code failed;
  const std::string whole = fs::absolute(path, failed).string();
  if (whole.size() + added >= PATH_MAX)
    return fmt::format("the path has {} bytes, a path here has at most {}", whole.size(),
                       PATH_MAX - 1 - added);
  for (const fs::path& part : path)
    if (const std::string name = part.string(); name.size() + added > NAME_MAX)
      return fmt::format("the name '{}...' has {} bytes, a name here has at most {}",
                         name.substr(0, 20), name.size(), NAME_MAX - added);
  return "";
}

namespace {

// Reads process groups, one a line and each instead of the one before, until whoever writes them
// has ended; then ends the last and removes the folder.
constexpr const char* kGuard =
    "while read -r next; do group=$next; done; "
    "[ \"${group:-0}\" = 0 ] || kill -s KILL -- \"-$group\"; exec rm -rf -- \"$0\"";

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::error_code failed;
  std::string pattern = (fs::temp_directory_path(failed) / "kernelwright.XXXXXX").string();
  path_ = mkdtemp(pattern.data()) ? pattern : std::string();
  int ends[2];
  if (path_.empty() || pipe2(ends, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[0], 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);
  const char* words[] = {"sh", "-c", kGuard, path_.c_str(), nullptr};
  if (posix_spawn(&guard_, "/bin/sh", &files, &how, const_cast<char**>(words), environ) != 0)
    guard_ = -1;
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  close(ends[0]);
  to_guard_ = ends[1];
}

void TemporaryFolder::ends_with_us(pid_t group) const {
  if (guard_ > 0) dprintf(to_guard_, "%d\n", static_cast<int>(group));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (to_guard_ >= 0) close(to_guard_);
  int status = 0;
  while (guard_ > 0 && waitpid(guard_, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace kw
