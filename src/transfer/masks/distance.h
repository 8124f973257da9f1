// Expressions of a map over the distance j - i of a key and a query alone.
#pragma once
#include "tl/syntax/expr.h"

namespace kw::transfer {

// The distance's name in what set_diagonals computes.
inline constexpr const char* kDistance = "d";

// e with d in the place of j - i, an int, or f32(d) where the map's coordinates are reals; null
// where e mentions i or j otherwise, or something that is called d.
tl::ExprPtr over_distance(const tl::ExprPtr& e, bool real_coordinates);

}  // namespace kw::transfer
