// Orchestration mutants of a TL program: one statement dropped, doubled, moved or changed.
#pragma once
#include <string>
#include <vector>

#include "tl/program.h"

namespace kw::test {

struct Mutant {
  std::string kind;   // "drop wait_free"
  std::string where;  // the statement as it was, with its line in the canonical text
  tl::Program program;
  std::string now;  // the statement as it is, where it is still there: numerical mutants
};

// Every mutant of every class.
std::vector<Mutant> mutants_of(const tl::Program& program);

}  // namespace kw::test
