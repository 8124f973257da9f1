// What a statement of a plan reads and writes, by name: q_s, acc, m.
//
// Sketches are judged by it (a tile is written before it is read), and the passes that size and
// schedule them know by it which copy a product waits for and where a tile is free.
#pragma once
#include <string>
#include <vector>

#include "tl/program.h"

namespace kw::tl {

struct Effects {
  std::vector<std::string> reads, writes;  // in the order of the text; arguments and locals too
};
// Without the statements of its block.
Effects effects_of(const Stmt& stmt);

bool reads(const Stmt& stmt, std::string_view name);
bool writes(const Stmt& stmt, std::string_view name);

}  // namespace kw::tl
