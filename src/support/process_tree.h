// A process and all that descend from it, as /proc tells it.
//
// The kernel's own limits count by user and leave root out, and cgroups take rights that a plain
// user lacks. So who waits for a child looks a few times a second at what has become of it. A
// process whose parent has ended is its tree's no longer, unless the tree has a process that takes
// such in, as the first of a PID namespace does, or a subreaper (prctl(2)).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace kw {

struct ProcessTree {
  std::vector<pid_t> processes;  // the root first
  int64_t threads = 0;
  uint64_t resident_bytes = 0;  // pages that several share count for each
};

ProcessTree process_tree(pid_t root);

// What the tree has in memory, each page once: dearer to ask than resident_bytes, which is never
// less. A process that does not tell counts with no page.
uint64_t memory_of(const ProcessTree& tree);

// Kills every process of the tree, and those that it starts meanwhile.
void kill_tree(pid_t root);

}  // namespace kw
