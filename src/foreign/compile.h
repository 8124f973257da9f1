// A foreign kernel through nvcc: its own files, those that changed in their new text.
//
// What a compiler says goes back into a prompt, so it is scrubbed: findings about the sources stay,
// with paths from the sources' folder; of any other file nothing is quoted, and nothing names a
// place on this machine. The result is a cubin and nothing else: no host code runs.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foreign/description.h"

namespace kw::foreign {

struct Compiled {
  std::string cubin;  // empty when it failed
  std::string said;   // scrubbed errors, or what ptxas says of the entry
  bool compiled() const { return !cubin.empty(); }
};

// `changed` files replace those of the sources. `torch` is the folder that {torch} stands for.
// Reports foreign.nvcc when there is no compiler.
std::optional<Compiled> compile(const Description& description, const Sources& sources,
                                const std::map<std::string, std::vector<std::string>>& changed,
                                const std::string& torch, Diagnostics& diagnostics);

// `text` without places of this machine: `ours` (the folder that was compiled in) is taken away,
// and lines about files outside of it are left out.
std::string scrubbed(const std::string& text, const std::string& ours);

}  // namespace kw::foreign
