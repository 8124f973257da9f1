// What NVRTC and the ptxas inside it say about a compilation, as facts.
//
// Three things are read from the log: errors and warnings with their line, the resources of each
// entry, and ptxas's remarks that it gave up an optimisation. ptxas prints the last as `info`, with
// exit status zero, though the kernel may have become half as fast:
//
//   ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized
//                   due to ... in function 'attention_fwd'
//   ptxas info    : Compiling entry function 'attention_fwd' for 'sm_90a'
//   ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 168 registers, used 16 barriers, 1024 bytes smem
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kw::runtime {

// The resources of one entry as ptxas -v reports them; all sizes in bytes.
struct EntryResources {
  std::string entry;
  int registers = 0;
  int barriers = 0;  // named barriers (bar.sync), not mbarriers
  int stack = 0;
  int spill_stores = 0, spill_loads = 0;
  bool spills() const { return spill_stores + spill_loads > 0; }
  int shared = 0;  // static shared memory; the dynamic part is a matter of the launch
};

// A line of the front end: NAME(LINE): error: MESSAGE.
struct CompilerMessage {
  std::string file;
  int line = 0;  // from 1
  bool is_error = false;
  std::string message;
};

struct CompileLog {
  std::vector<CompilerMessage> messages;
  std::vector<EntryResources> entries;
  std::vector<std::string> losses;  // "Potential Performance Loss" and C75xx remarks, whole lines
  std::vector<std::string> fatal;   // errors without a place: ptxas's, and of unknown options
};

CompileLog parse_compile_log(std::string_view log);

// Those of `entries` of which the log gives no resources. A compiler that takes a result from a
// cache of its own says nothing, and silence is no proof that nothing spills.
std::vector<std::string> unreported(const std::vector<EntryResources>& reported,
                                    const std::vector<std::string>& entries);

}  // namespace kw::runtime
