// A keep predicate as bounds on the key index, and what they are over the rows of a tile.
//
// Most masks keep, in each row, the keys of one range: `j <= i or j < prefix[b]` is
// `j < max(i + 1, prefix[b])`. One comparison an element is what registers allow; and the largest
// and the smallest bound over a tile's rows say which key blocks to visit and which need no mask.
// Predicates are over the indices i (query row), j (key), b and h; bounds are over i, b and h.
#pragma once
#include <optional>

#include "operator/expr/expr.h"

namespace kw::transfer {

// keep == (lower <= j and j < upper). A null bound is absent.
struct KeyBounds {
  spec::ExprPtr lower, upper;
};

// The bounds that say exactly what keep says for 0 <= j < keys, or nothing if its kept keys are not
// one such range. A condition on the row alone becomes the bound where(condition, keys, 0).
std::optional<KeyBounds> key_bounds(const spec::ExprPtr& keep, const spec::ExprPtr& keys);

// The keys of a or b where they are provably one range.
std::optional<KeyBounds> union_of(const KeyBounds& a, const KeyBounds& b);
// Comparisons of |x| over j, and x == y, as comparisons joined by and or or; all else stays.
spec::ExprPtr as_comparisons(const spec::ExprPtr& keep);

// The rows of a tile, first and last.
struct Rows {
  spec::ExprPtr first, last;
};

// An upper (lower) bound of e over i in rows, without i; null when none is known. Exact for sums,
// min, max and // of i; otherwise each part is bounded on its own, which is sound.
spec::ExprPtr highest(const spec::ExprPtr& e, const Rows& rows);
spec::ExprPtr lowest(const spec::ExprPtr& e, const Rows& rows);

// a <= b whatever the indices, sizes and arguments; false where that is not known.
bool at_most(const spec::ExprPtr& a, const spec::ExprPtr& b);
// min and max that keep one operand where the other provably is not needed.
spec::ExprPtr smaller(const spec::ExprPtr& a, const spec::ExprPtr& b);
spec::ExprPtr larger(const spec::ExprPtr& a, const spec::ExprPtr& b);

}  // namespace kw::transfer
