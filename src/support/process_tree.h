// A process and all that descend from it, as /proc tells it.
//
// The kernel's own limits count by user and leave root out, and cgroups take rights that a plain
// user lacks. So who waits for a child looks a few times a second at what has become of it. A
// process whose parent has ended is its tree's no longer, unless the tree has a process that takes
// such in, as the first of a PID namespace does, or a subreaper (prctl(2)).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kw {

struct ProcessTree {
  std::vector<pid_t> processes;  // the root first
  // Of each, what /proc tells of it: "/proc/PID", or where its first thread has ended and others go
  // on, "/proc/PID/task/TID".
  std::vector<std::string> folders;
  int64_t threads = 0;
  std::vector<uint64_t> resident;  // bytes of each
  uint64_t resident_bytes = 0;     // of all: pages that several share count for each
};

ProcessTree process_tree(pid_t root);

// Pages in memory, each once.
struct MemoryOfTree {
  uint64_t bytes = 0;
  uint64_t shared = 0;  // of them: of files in memory, and of memory that is shared by fork
  bool silent = false;  // a process does not tell, and counts with all its resident pages
};

// What the tree has mapped and in memory: dearer to ask than resident_bytes, which is never less.
MemoryOfTree memory_of(const ProcessTree& tree);

// Kills every process of the tree, and those that it starts meanwhile.
void kill_tree(pid_t root);

}  // namespace kw
