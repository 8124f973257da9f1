// Visits of key blocks by number, where the key blocks that some query rows need are not 0, 1, 2,
// ...
//
// The loops over key blocks count visits: `for t, n in range_down_counted(keys.count - 1, 0)`. In
// the expert's text visit n is key block n. Where the needed key blocks are any others (two ranges
// with a hole, a list that was written before), they are still visited by number, and a function
// says which key block a visit is:
//
//   def key_block(c: Block, n: index) -> index:
//       return n + where(n < c.m, 0, 7)
//   tma_load_multicast k[c.b, g, n * BN] ...  ->  tma_load_multicast k[c.b, g, key_block(c, n) *
//   BN] ... map_at s[i, j] from (i0, n * BN) ...   ->  map_at s[i, j] from (i0, key_block(c, n) *
//   BN) ...
//
// Whoever loads, multiplies and masks for one block of the output counts the same visits, so the
// function depends on the block and on the number alone. Visits in falling order of n are key
// blocks in any order; each key block is visited at most once.
#pragma once
#include "transfer/families/attention/edit.h"

namespace kw::transfer {

// Puts that function before the one for key ranges and asks it at every load of keys and values and
// every origin of a map of the scores. `body` is TL: lets and a return, in which the block of the
// output is `block` as key_blocks calls it, and the visit is `n`. To be called after the rules that
// add maps of the scores. False, with a refusal, where the kernel has such a place in another form.
bool number_visits(Edit& edit, const std::vector<std::string>& body);

// A record, behind that of key ranges.
bool insert_record(Edit& edit, const std::string& name, const std::vector<std::string>& fields);

}  // namespace kw::transfer
