// How two programs differ, statement by statement.
//
// Blocks are aligned level by level: statements that print alike stay together, what is left pairs
// up with the most similar statement of its kind, in order; the rest was deleted or inserted.
#pragma once
#include <string>
#include <vector>

#include "tl/program.h"

namespace kw::tl {

struct Pair {
  const Stmt* from;  // null: inserted
  const Stmt* to;    // null: deleted
};

// The statements of two blocks in one order that keeps both. Paired statements have the same word,
// or are variants of one idea (two maps of tiles, two loops over blocks, ...); their blocks are for
// the caller to align.
std::vector<Pair> align(const std::vector<Stmt>& from, const std::vector<Stmt>& to);

// For a person: `-` and `+` lines under the heads of the blocks they stand in; empty if equal.
std::string print_diff(const Program& from, const Program& to);

}  // namespace kw::tl
