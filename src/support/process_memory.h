// What a tree of processes has taken of a machine's memory, also where no process's pages say it.
//
// Pages that processes have mapped are theirs (process_tree.h). Beside them a file in memory takes
// what is written into it, mapped or not: one without a name (memfd_create), and one in a tmpfs
// that only the tree sees. Each such file is counted once, by the blocks that it has.
//
// What is hard is what nobody tells: a file that is mapped and closed, or sent through a socket and
// closed; what waits in sockets; a process that hides its files. There the machine itself is asked,
// how much more of its memory is shared, or no longer available, than since the watch began: only
// of a tree that has what could have taken it, so that others' programs are not held against it.
#pragma once
#include <cstdint>

#include "support/process_tree.h"

namespace kw {

class MemoryWatch {
 public:
  MemoryWatch();

  // Whether the tree has taken more. Dear only near the limit: a fraction of a millisecond for a
  // process that has few files, tens of milliseconds beyond.
  bool beyond(const ProcessTree& tree, uint64_t limit);

 private:
  uint64_t shared_ = 0, available_ = 0;  // of the machine: the least and the most since it began
};

}  // namespace kw
