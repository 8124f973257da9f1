#include "support/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

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

bool StagedFolder::commit() {
  std::error_code failed;
  const fs::path old = staging_.string() + ".old";
  if (fs::exists(target_)) fs::rename(target_, old, failed);
  if (failed) return false;
  fs::rename(staging_, target_, failed);
  if (failed) return false;
  committed_ = true;
  fs::remove_all(old, failed);
  return true;
}

}  // namespace kw
