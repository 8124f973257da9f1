// A plan, taken apart: one grid over the output's rows and heads, one loop over blocks of keys in
// it.
//
// That is the only shape that the passes know, at both of their levels: what stands before the loop
// happens once for a block of rows, what stands in it once for a block of keys, the rest at the
// end. A sized plan that was cut (cut.h) has a `range` of steps in its loop, and an `if` after it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tl/program.h"

namespace kw::sketch {

struct Plan {
  const tl::Stmt *plan = nullptr, *grid = nullptr, *loop = nullptr;
  std::vector<const tl::Stmt*> declared;  // in the plan, before its grid: a sized plan's tiles
  std::vector<const tl::Stmt*> before, inside, after;  // of the loop
  std::string counter;                                 // of the loop
  std::vector<std::string> counters;                   // of the grid
  std::vector<tl::ExprPtr> extents;
};

// What the module says of itself: sketch, sized, or scheduled where it says nothing.
std::string level_of(const tl::Program& program);

// Reports sketch.shape at the statement that is one too many, or that is missing, and sketch.level
// where the module's level is not `level`.
std::optional<Plan> read_plan(const tl::Program& program, const std::string& level,
                              Diagnostics& diagnostics);

// The values of the module's parameters, by name.
std::map<std::string, int64_t> parameters(const tl::Program& program);

// The tensor of the arguments that this declares, or null; and the letters of its dimensions.
const tl::Stmt* tensor_named(const tl::Program& program, const std::string& name);
std::string dimension(const tl::Stmt& tensor, size_t n);
bool is_output(const tl::Stmt& tensor);

// The name, or with underscores, as long as the program has it.
std::string fresh_name(const tl::Program& program, std::string name);

}  // namespace kw::sketch
