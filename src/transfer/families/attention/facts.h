// Where a kernel does what: the places that a specification changes.
//
// Found by structure, not by name. The score tile is what a product with a transposed tile writes;
// the mask is the map_at of that tile to where(condition, s, -inf) or, of weights, 0 under an `if`
// in a step; the scale is what `online_max` is given; the functions block_of and key_blocks are
// what is called on a block's number, and on the result of that with some of its rows; where keys
// are split over blocks, part_of is what is called on a block and its key range, and the results
// are those of combine_parts. The number is that of a loop over blocks, or that of the CTA where
// each computes one (block_index). A kernel without such a place is refused (transfer.kernel),
// naming it.
#pragma once
#include <optional>
#include <string>

#include "support/diagnostic.h"
#include "tl/program.h"
#include "transfer/editing/declarations.h"
#include "transfer/editing/editing.h"

namespace kw::transfer {

struct Facts {
  // Arguments: the operands, the outputs, the scale of the exponent.
  std::string q, k, v, o, lse, scale;
  // Letters of the sizes: batch, query heads, key heads, queries, keys; of the constants, the
  // columns of q and k, and of v and the output.
  std::string batch, heads, groups, queries, keys, dim, value_dim;
  std::string score;      // the accumulator of the scores
  std::string softmax;    // the step that masks
  std::string block;      // the name of the block where the consumers compute it
  std::string block_def;  // block number -> block
  std::string keys_def;   // block, first query row, number of rows -> key range
  std::string part_def;   // block, key range -> a split's part of it; "" where keys are not split
  std::string row_field, head_field, batch_field;  // of a block
  std::string count_field, full_field;             // of a key range
  tl::ExprPtr row_tile, key_tile;                  // the params BM and BN
  tl::ExprPtr i0, j0;                              // the origin of a score tile in the step
};

std::optional<Facts> find_facts(const tl::Program& program, Diagnostics& diagnostics);

// ---- the places themselves, in a program that has them
tl::Stmt& args_of(tl::Program& program);
tl::Stmt* def_named(tl::Program& program, const std::string& name);  // or null
// The `if partial` with the mask, as a place in its step's block.
Place mask_of(tl::Program& program, const Facts& facts);
// The last map of the output before its store; null where there is none.
tl::Stmt* output_map_of(tl::Program& program);
// After the last of the lets before the step that masks: what is computed once for each block.
Place block_lets_end(tl::Program& program, const Facts& facts);

// The step that masks, facts.softmax; null in a program that lost it.
tl::Stmt* softmax_step(tl::Program& program, const Facts& facts);

// Whether s is this kind of map (map_at, map_real) of the scores; and what declares their tile.
bool is_map_of_scores(const tl::Stmt& s, tl::Op op, const Facts& facts);
const tl::Stmt* declaration_of_scores(const tl::Program& program, const Facts& facts);

// The toggles with which the step computes weights first, and looks afterwards whether the
// reference of their row could stand (any_exceeds).
std::vector<std::string> late_toggles(tl::Program& program, const Facts& facts);

// For how many rows, each time that somebody asks for their key range.
std::vector<tl::ExprPtr> rows_asked_for(const tl::Program& program, const Facts& facts);

// The value of an expression of constants; nothing for any other.
std::optional<int64_t> constant(const tl::Program& program, const tl::ExprPtr& e);

}  // namespace kw::transfer
