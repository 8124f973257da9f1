// Writing what an expression of the specification becomes in a map of the scores or of the output.
#pragma once
#include "transfer/editing/editing.h"
#include "transfer/masks/coordinates.h"

namespace kw::transfer {

// Replaces the largest parts that depend on the block alone, and read or compute something from the
// batch or the head (or, if asked to, from sizes), by names of `let`s; b and h themselves are read
// where they stand. Null after a refusal.
enum class Hoist { reads, sizes };
spec::ExprPtr hoist_parts(Editing& edit, const spec::ExprPtr& e, const std::string& name,
                          Hoist what = Hoist::reads);

// How a map is given the numbers of its row and column: as f32, which is exact up to 2^24 (a
// condition of the launch), or as integers where something is divided.
enum class Coordinates { none, real, integer };
Coordinates coordinates_of(const spec::ExprPtr& value);
// Adds that condition where coordinates are reals, of these letters of the queries and the keys.
bool exact_coordinates(Editing& edit, Coordinates coordinates, const std::string& queries,
                       const std::string& keys);

// `map_real t[i, j] from (i0, j0) = body`; `map t[i, j] = body` without coordinates.
std::string map_text(Coordinates coordinates, const std::string& tile, const std::string& i0,
                     const std::string& j0, const std::string& body);

}  // namespace kw::transfer
