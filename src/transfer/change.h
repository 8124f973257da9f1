// What a transfer changed of a program.
#pragma once
#include <string>
#include <vector>

#include "transfer/transfer.h"

namespace kw::transfer {

// The statements that one program has and the other has not, in order: what a rule changed.
struct Change {
  std::vector<std::string> removed, added;
};
Change change(const tl::Program& before, const tl::Program& after);

// Adds the rule to the result's, where it changed anything.
void note_rule(Result& result, const char* name, const tl::Program& before,
               const tl::Program& after);

}  // namespace kw::transfer
