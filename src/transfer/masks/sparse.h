// Masks that let a row see a part of the keys: what is known of them before a kernel has tiles.
#pragma once
#include "operator/expr/expr.h"

namespace kw::transfer {

// Whether e reads data at a place that depends on the row or the key.
bool reads_the_tile(const spec::ExprPtr& e);

// Of a mask without data: whether its intervals over tiles leave out a fifth or more of the tiles
// that its ranges of keys (key_ranges.h) visit: `i % 512 // 64 == j % 512 // 64`. `keys` and
// `queries` are the sizes, a constant or a name.
bool ranges_visit_too_much(const spec::ExprPtr& keep, const spec::ExprPtr& keys,
                           const spec::ExprPtr& queries);

// What a row sees of the keys: one window of more than 512, whose first key moves with the row by
// closed form; parts of them: narrower windows or one beside other keys, pairs that data tells
// apart at the key (the same document), blocks as above; or anything else. Where it sees parts, the
// rows of a large tile visit many keys that only a few of them see.
enum class Seen { window, parts, other };
Seen what_a_row_sees(const spec::ExprPtr& keep, const spec::ExprPtr& keys,
                     const spec::ExprPtr& queries);

}  // namespace kw::transfer
