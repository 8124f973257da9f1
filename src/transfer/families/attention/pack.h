// Heads packed into rows. Where one query of each head is asked for, as in decoding, a tile of one
// head has one row, and the keys that a group of heads shares are read once for each of its heads.
// Packed, the heads of a group are the rows of one tile: R of them, of the one head that their keys
// have.
//
//   q: in element[B, H, M, D]    ->   q: in element[B, G, R, D]
//
// In memory nothing moves: with one query, rows of a group's heads are as far apart as heads are.
// So a packed kernel is the kernel itself for G heads of R queries, and the user's tensors are
// viewed that way: dimension H is split in two (Binding), and M, which is 1, is left out.
#pragma once
#include <cstdint>
#include <optional>

#include "operator/form.h"
#include "transfer/families/attention/facts.h"

namespace kw::transfer {

// Query heads for each key head.
int64_t group_of(const spec::Form& form);

// The form as a packed kernel has it: G heads of R queries, of any number R. Nothing where heads
// are not packed: of more queries than one, of as many key heads, where a score, a mask or the
// output reads the head's number (other than that of its keys), where rows change first, and of
// several terms.
std::optional<spec::Form> packed_form(const spec::Form& form);

// Whether the program's rows are heads: q and k have one size of heads.
bool is_packed(const Facts& facts);

// The program with packed rows, which packed_form's rules then change.
tl::Program packed(const tl::Program& program, const Facts& facts);

}  // namespace kw::transfer
