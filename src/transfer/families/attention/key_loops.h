// The loops over key blocks of a kernel whose key ranges do not begin at key 0, or whose key blocks
// that need no mask do not.
//
//   masked    n from count - 1 down to full      ->  the same
//   unmasked  n from full - 1 down to 0          ->  down to full_from
//                                                ->  and masked again, down to first or 0
//
// Where others load for several warpgroups, all of them let the blocks go by that only the others
// need: above a warpgroup's count in the expert's text, and below its first here.
#pragma once
#include "transfer/families/attention/edit.h"

namespace kw::transfer {

// What a key range says beside count and full.
struct KeyFields {
  bool first;      // the visits are count - 1 ... first, not ... 0
  bool full_from;  // full - 1 ... full_from need no mask, not ... 0
};

// Gives the record of key ranges those fields, behind count and full in this order, and ends the
// loops where they say. With `first` and no `full_from` every visit is masked. False, with a
// refusal, where the kernel's loops are built in another way.
bool end_key_loops(Edit& edit, const KeyFields& fields);

}  // namespace kw::transfer
