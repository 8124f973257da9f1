// A keep predicate as a union of ranges of keys.
//
// `j <= i and (j < 4 or i - 512 < j)` keeps, in row i, the keys of [0, min(i + 1, 4)) and of
// [i - 511, i + 1). Any predicate is taken apart by its `and` and `or` into such ranges (the
// distributive law: a disjunctive normal form whose atoms are ranges). What is no range of keys in
// each row (`document[b, i] == document[b, j]`) is taken for all keys, which is sound for what is
// visited; a range in which nothing else has to hold is *whole*, which is what may go without mask.
#pragma once
#include <vector>

#include "transfer/masks/key_bounds.h"

namespace kw::transfer {

// keep(i, j) implies that j lies in one of `cover`; j in one of `whole` implies keep(i, j). Neither
// is in any order, ranges may overlap and be empty in some rows.
struct KeyRanges {
  std::vector<KeyBounds> cover;  // one or two
  std::vector<KeyBounds> whole;
  int merged = 0;  // ranges of the cover that were joined although keys may lie between them

  KeyBounds around() const;  // the smallest range that holds all of cover
};

KeyRanges key_ranges(const spec::ExprPtr& keep, const spec::ExprPtr& keys);

}  // namespace kw::transfer
