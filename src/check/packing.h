// Heads packed into rows: where query heads share a key head and there are few queries, a kernel
// may take these heads' queries as rows of one tile. Its signature says so: q[B, G, R, D] beside
// k[B, G, N, D], where row r of key head g is query r % M of query head g * (H // G) + r // M. In
// memory that is q[B, H, M, D] itself, so outputs need another shape and nothing else.
#pragma once
#include "check/trial.h"

namespace kw::check {

// The dimensions before the rows of attention's tensors.
inline int64_t batch_of(const exec::Place& p) { return p.outer[0]; }
inline int64_t head_of(const exec::Place& p) { return p.outer[1]; }

// Whether the heads of q and k have one size in the program.
bool packs_heads(const tl::Program& program);

// What a row of the program is to the user: a head of the case, and a query of it. Of a program
// that packs no heads, what it says.
struct UserRow {
  int64_t head, query;
};
UserRow user_row(const Case& c, int64_t queries, int64_t head, int64_t row);

// Shape [B, heads, queries, ...] as the program has it, and back.
void pack_rows(const Case& c, Tensor& t);
void unpack_rows(const Case& c, int64_t queries, Tensor& t);

// The outputs of a run in the user's heads and queries.
void unpack(const Case& c, int64_t queries, exec::Outcome& run);

// A key block that a warpgroup multiplied with its query rows: where weights meet their values.
struct Visit {
  int64_t batch, head, row, rows;  // query rows [row, row + rows) of a head of the case
  int64_t key, keys;               // keys [key, key + keys)
  bool masked;                     // a map that can write -inf ran on the scores
  std::string into;                // the accumulator that took what came of them
};
// Of a run, in the user's heads and queries; rows past the last of a tile are left out.
std::vector<Visit> visits_of(const Case& c, int64_t queries, const exec::Outcome& run);

}  // namespace kw::check
