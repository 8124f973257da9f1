// Files written whole or not at all, and their hashes.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace kw {

// Writes beside `path` and renames, so a reader sees the old text or the new, never a part.
// Returns false and leaves errno when it cannot.
bool write_file(const std::filesystem::path& path, std::string_view text);

// A folder that becomes visible only when it is complete: fill `path()`, then commit().
// Destroying it without a commit removes everything; a killed process leaves only ".NAME.PID".
// Where no folder can be made there is none, and what is written into it fails.
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

// What is wrong with a path that is to be written, by its length alone: "the name 'xxx...' has 300
// bytes, a name here has at most 255"; empty where nothing is.
std::string too_long(const std::filesystem::path& path);

// A folder of our own among the system's temporary files, which goes away with its owner: also when
// the process is killed, by a small shell in a session of its own that waits for the process's end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Empty where none could be made.
  const std::filesystem::path& path() const { return path_; }

  // A process group that is to end with the process as well; 0: none any more.
  void ends_with_us(pid_t group) const;

 private:
  std::filesystem::path path_;
  pid_t guard_ = -1;
  int to_guard_ = -1;
};

// Lower-case hexadecimal SHA-256.
std::string sha256(std::string_view bytes);

}  // namespace kw
