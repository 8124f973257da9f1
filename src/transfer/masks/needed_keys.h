// Which keys some query rows need, as expressions over the first row i0 and the number of rows.
//
// The kept keys lie in one or two ranges and contain some whole ones (key_ranges.h). Over the rows
// of a tile, `end` is the largest end, `first` the smallest begin, and a span of `whole` lies
// inside a whole range of every row. A warpgroup visits key blocks that its cluster loads: bounds
// over fewer rows are at least as tight, so its range lies within its cluster's. For that, `first`
// also stays below the end of every single row.
#pragma once
#include <optional>
#include <vector>

#include "transfer/families/attention/edit.h"
#include "transfer/masks/key_ranges.h"

namespace kw::transfer {

// Keys from ... below - 1.
struct KeySpan {
  spec::ExprPtr from, below;
};

// For some rows: past `end` nothing is kept, before `first` nothing; in each span of `whole`, of
// which there are two at most, everything. And for all rows of a cluster: nothing in the hole.
struct Needed {
  spec::ExprPtr end;
  spec::ExprPtr first;  // null: from key 0
  std::vector<KeySpan> whole;
  std::optional<KeySpan> hole;
};

// `count` names how many rows there are from i0. The hole is over the rows of a cluster.
Needed needed_keys(const Edit& edit, const KeyRanges& kept, const std::string& count);

}  // namespace kw::transfer
