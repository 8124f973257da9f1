// Vectors of what maps of a tile of scores compute from its row, its column or their distance alone
// (the rules `columns` of families say when).
#pragma once
#include <functional>
#include <string>

#include "transfer/editing/editing.h"

namespace kw::transfer {

// A tile of scores: the step in which it is mapped, its name, its first row as TL text, where a
// block of the output begins, and whether rows are set there for maps under a condition too.
struct ScoreTile {
  std::string step, score, i0;
  std::function<Place()> block;
  bool rows_once = false;
};

// Sets the vectors and reads their elements. False after a refusal.
bool hoist_vectors(Editing& edit, const ScoreTile& tile);

}  // namespace kw::transfer
