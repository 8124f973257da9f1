// Files written whole or not at all, and their hashes.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace kw {

// Writes beside `path` and renames, so a reader sees the old text or the new, never a part.
// Returns false and leaves errno when it cannot.
bool write_file(const std::filesystem::path& path, std::string_view text);

// A folder that becomes visible only when it is complete: fill `path()`, then commit().
// Destroying it without a commit removes everything; a killed process leaves only ".NAME.PID".
class StagedFolder {
 public:
  explicit StagedFolder(std::filesystem::path target);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const { return staging_; }
  // Replaces the target by what was staged. Returns false when the rename fails.
  bool commit();

 private:
  std::filesystem::path target_, staging_;
  bool committed_ = false;
};

// A folder of our own among the system's temporary files, which goes away with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Empty where none could be made.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Lower-case hexadecimal SHA-256.
std::string sha256(std::string_view bytes);

}  // namespace kw
