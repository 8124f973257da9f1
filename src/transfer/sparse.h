// Masks that let a row see a part of the keys: what is known of them before a kernel has tiles.
#pragma once
#include <optional>

#include "spec/expr.h"

namespace kw::transfer {

// Whether e reads data at a place that depends on the row or the key.
bool reads_the_tile(const spec::ExprPtr& e);

// Of a mask without data: whether its intervals over tiles leave out a fifth or more of the tiles
// that its ranges of keys (ranges.h) visit: `i % 512 // 64 == j % 512 // 64`. `keys` and `queries`
// are the sizes, a constant or a name.
bool ranges_visit_too_much(const spec::ExprPtr& keep, const spec::ExprPtr& keys,
                           const spec::ExprPtr& queries);

// Ranges of keys whose first moves with the row, by closed form: one of more than 512 keys, or
// narrower ones, or one beside other keys. Null where there is none, or where only data says how
// wide it is.
enum class Windows { one_wide, others };
std::optional<Windows> windows_of(const spec::ExprPtr& keep, const spec::ExprPtr& keys,
                                  const spec::ExprPtr& queries);

// Whether a row sees a part of the keys that is no wide range: such other windows, pairs that data
// tells apart at the key (the same document), blocks as above. The rows of a large tile then visit
// many keys that only a few of them see.
bool is_sparse(const spec::ExprPtr& keep, const spec::ExprPtr& keys, const spec::ExprPtr& queries);

}  // namespace kw::transfer
