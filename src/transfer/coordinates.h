// What changes from element to element of a tile of scores.
#pragma once
#include "spec/expr.h"

namespace kw::transfer {

// e depends on the query row i or the key j.
inline bool has_coordinate(const spec::ExprPtr& e) {
  return spec::mentions(e, spec::Kind::index, "i") || spec::mentions(e, spec::Kind::index, "j");
}

// e is not one value for the whole block: it depends on i, j or the score.
inline bool varies_in_a_block(const spec::ExprPtr& e) {
  return has_coordinate(e) || spec::mentions(e, spec::Kind::score);
}

}  // namespace kw::transfer
