// Index expressions of a spec, spelled in TL.
//
// Names are already the kernel's: sizes are its letters, arguments and hoisted reads are leaves
// with the names that they have in TL. In a map_real the coordinates i and j are reals, so integers
// that mention them are computed as reals: exact below 2^24.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "operator/expr/expr.h"
#include "support/diagnostic.h"
#include "tl/syntax/expr.h"

namespace kw::transfer {

struct Spelling {
  std::map<std::string, tl::ExprPtr> indices;  // what i, j, b, h are here; others are refused
  tl::ExprPtr score;                           // what the raw product is, s[i, j]
  tl::ExprPtr output;                          // what the output's element is so far
  std::vector<tl::ExprPtr> totals;             // what the sums over a row are called
  bool real_coordinates = false;
};

// Nothing, with a diagnostic transfer.expression, if TL has no such function or index here.
std::optional<tl::ExprPtr> spell(const spec::ExprPtr& e, const Spelling& how,
                                 Diagnostics& diagnostics);

// True if i or j stands where a real would not do: in // or % or a read's index.
bool needs_integer_coordinates(const spec::ExprPtr& e);

}  // namespace kw::transfer
