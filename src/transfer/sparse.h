// Masks that let a row see a part of the keys: what is known of them before a kernel has tiles.
#pragma once
#include "spec/expr.h"

namespace kw::transfer {

// Whether e reads data at a place that depends on the row or the key.
bool reads_the_tile(const spec::ExprPtr& e);

// Of a mask without data: whether its intervals over tiles leave out a fifth or more of the tiles
// that its ranges of keys (ranges.h) visit: `i % 512 // 64 == j % 512 // 64`. `keys` and `queries`
// are the sizes, a constant or a name.
bool ranges_visit_too_much(const spec::ExprPtr& keep, const spec::ExprPtr& keys,
                           const spec::ExprPtr& queries);

// Whether a row sees a part of the keys with a beginning of its own: a window whose first key moves
// with the row by closed form, pairs that data tells apart (the same document; a row's own range),
// or blocks as above. The rows of a large tile then visit many keys that only a few of them see. A
// causal mask is none, nor are the lengths of batch entries, nor a window that a head's data may
// make wide.
bool is_sparse(const spec::ExprPtr& keep, const spec::ExprPtr& keys, const spec::ExprPtr& queries);

}  // namespace kw::transfer
