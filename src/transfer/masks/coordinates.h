// What changes from element to element of a tile.
#pragma once
#include "operator/expr/expr.h"
#include "tl/syntax/expr.h"

namespace kw::transfer {

// e depends on the query row i, the key j or the column d.
inline bool has_coordinate(const spec::ExprPtr& e) {
  for (const char* index : {"i", "j", "d"})
    if (spec::mentions(e, spec::Kind::index, index)) return true;
  return false;
}

// The same of an expression of a map in TL, which depends on i or j.
inline bool has_coordinate(const tl::ExprPtr& e) {
  return tl::mentions(e, "i") || tl::mentions(e, "j");
}

// e is not one value for the whole block: it depends on a coordinate, the score or the output.
inline bool varies_in_a_block(const spec::ExprPtr& e) {
  return has_coordinate(e) || spec::mentions(e, spec::Kind::score) ||
         spec::mentions(e, spec::Kind::output);
}

}  // namespace kw::transfer
