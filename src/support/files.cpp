#include "support/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
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
  fs::remove_all(staging_);
  fs::create_directories(staging_);
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

TemporaryFolder::TemporaryFolder() {
  std::error_code failed;
  std::string pattern = (fs::temp_directory_path(failed) / "kernelwright.XXXXXX").string();
  path_ = mkdtemp(pattern.data()) ? pattern : std::string();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace kw
