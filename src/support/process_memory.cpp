#include "support/process_memory.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace kw {
namespace {

// The most that waits in one socket: twice net.core.wmem_max, where nobody has raised it far.
constexpr uint64_t kMostOfSocket = uint64_t{8} << 20;

// The bytes of a line "Word:  123 kB"; 0 where there is none.
uint64_t told(const std::string& file, const std::string& word) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line))
    if (line.starts_with(word) && line[word.size()] == ':')
      return std::strtoull(line.c_str() + word.size() + 1, nullptr, 10) * 1024;
  return 0;
}

uint64_t above(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

struct Held {
  std::map<std::pair<dev_t, ino_t>, uint64_t> files;  // in memory, without a name
  std::map<dev_t, uint64_t> systems;                  // each tmpfs that only the tree sees
  uint64_t sockets = 0;
  bool silent = false;  // a process does not tell what it holds

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const auto& [file, size] : files) sum += size;
    for (const auto& [system, size] : systems) sum += size;
    return sum;
  }
};

// `process` is its folder in /proc here and below.
void add_files(const std::string& process, Held& held) {
  const std::string folder = process + "/fd";
  DIR* open = opendir(folder.c_str());
  if (!open) {
    held.silent =
        held.silent || (errno != ENOENT && errno != ESRCH);  // who has ended holds nothing
    return;
  }
  while (const dirent* entry = readdir(open)) {
    const std::string path = folder + "/" + entry->d_name;
    char target[64];
    const ssize_t n = readlink(path.c_str(), target, sizeof target);
    const std::string_view name(target, n > 0 ? n : 0);
    if (name.starts_with("socket:")) ++held.sockets;
    struct stat found;
    if (name.starts_with("/memfd:") && stat(path.c_str(), &found) == 0)
      held.files[{found.st_dev, found.st_ino}] = static_cast<uint64_t>(found.st_blocks) * 512;
  }
  closedir(open);
}

// (device, where it is mounted) of each tmpfs that a process sees.
std::map<dev_t, std::string> temporary_systems(const std::string& process) {
  std::map<dev_t, std::string> out;
  std::ifstream in(process + "/mountinfo");  // proc(5): "36 35 98:0 /root /mount ... - type ..."
  std::string line;
  while (std::getline(in, line)) {
    if (line.find(" - tmpfs ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string number, parent, device, root, mount;
    words >> number >> parent >> device >> root >> mount;
    unsigned major = 0, minor = 0;
    if (sscanf(device.c_str(), "%u:%u", &major, &minor) == 2)
      out[gnu_dev_makedev(major, minor)] = mount;
  }
  return out;
}

void add_systems(const ProcessTree& tree, Held& held) {
  const std::map<dev_t, std::string> ours = temporary_systems("/proc/self");
  std::set<std::string> seen;
  for (const std::string& process : tree.folders) {
    char space[64];
    const ssize_t n = readlink((process + "/ns/mnt").c_str(), space, sizeof space);
    if (n > 0 && !seen.insert(std::string(space, n)).second) continue;
    for (const auto& [device, mount] : temporary_systems(process)) {
      struct statfs found;
      if (ours.contains(device) || statfs((process + "/root" + mount).c_str(), &found) != 0 ||
          found.f_type != TMPFS_MAGIC)
        continue;
      held.systems[device] = (found.f_blocks - found.f_bfree) * found.f_bsize;
    }
  }
}

// Whether a process has mapped a file in memory that it, or another, has closed.
bool maps_what_is_closed(const std::string& process, const Held& held) {
  std::ifstream in(process + "/maps");  // "begin-end rwxp offset dev inode   path"
  std::string line;
  while (std::getline(in, line)) {
    const bool unnamed = line.find(" /dev/zero (deleted)") != std::string::npos ||
                         line.find(" /SYSV") != std::string::npos;
    if (unnamed) return true;
    if (line.find(" /memfd:") == std::string::npos) continue;
    unsigned major = 0, minor = 0;
    unsigned long inode = 0;
    if (sscanf(line.c_str(), "%*s %*s %*s %x:%x %lu", &major, &minor, &inode) != 3 ||
        !held.files.contains(std::pair<dev_t, ino_t>{gnu_dev_makedev(major, minor), inode}))
      return true;
  }
  return false;
}

// Of a machine.
uint64_t shared_now() { return told("/proc/meminfo", "Shmem"); }
uint64_t available_now() { return told("/proc/meminfo", "MemAvailable"); }

}  // namespace

MemoryWatch::MemoryWatch() : shared_(shared_now()), available_(available_now()) {}

bool MemoryWatch::beyond(const ProcessTree& tree, uint64_t limit) {
  shared_ = std::min(shared_, shared_now());
  available_ = std::max(available_, available_now());
  Held held;
  for (const std::string& process : tree.folders) add_files(process, held);
  add_systems(tree, held);
  const uint64_t files = held.bytes(), grown = above(shared_now(), shared_);
  const uint64_t waiting =
      std::min(held.sockets * kMostOfSocket, above(available_, available_now()));
  if (tree.resident_bytes + std::max(files, grown) + waiting <= limit) return false;

  const MemoryOfTree pages = memory_of(tree);
  bool silent = held.silent || held.sockets > 0 || pages.silent;
  for (const std::string& process : tree.folders)
    silent = silent || maps_what_is_closed(process, held);
  // What is mapped of the files is among the pages, too: no less than the larger, and no more than
  // both, of which the machine says how much.
  const uint64_t least = std::max(files, pages.shared);
  const uint64_t shared = std::max(least, silent ? grown : std::min(files + pages.shared, grown));
  const uint64_t own = pages.bytes - pages.shared;
  // What is no longer available is of all kinds: of sockets only what the rest does not explain.
  return own + shared + std::min(waiting, above(above(available_, available_now()), own + shared)) >
         limit;
}

}  // namespace kw
