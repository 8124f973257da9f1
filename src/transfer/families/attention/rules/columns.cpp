// What depends on the key alone, the row alone, or their distance alone, is computed once and not
// for every score.
//
//   if partial:                                      ->   if partial:
//       map_at s[i, j] from (i0, n * BN) =                  column document_j: i32[BN]
//           where(document[c.b, i] ==                       set_columns document_j[j] from n * BN =
//                 document[c.b, j] and                          document[c.b, j]
//                 j < min(N, i + 1), s[i, j], -inf)         row document_i: i32[64]
//                                                           set_rows document_i[i] from i0 =
//                                                               document[c.b, i]
//                                                           map_at s[i, j] from (i0, n * BN) =
//                                                               where(document_i[i] ==
//                                                                 document_j[j] and
//                                                                 j < min(N, i + 1), s[i, j], -inf)
//
//   map_at s[i, j] from (i0, n * BN) =             ->   diagonal table_d: real[64, BN]
//       s[i, j] + unscale * table[c.h, j - i + R]       set_diagonals table_d[d] from
//                                                           (i0, n * BN) =
//                                                           unscale * table[c.h, d + R]
//                                                       map_at s[i, j] from (i0, n * BN) =
//                                                           s[i, j] + table_d[j - i]
//
// When     a part of a map of the scores by coordinates mentions j and not i, or i and not j, or
//          both as a distance (distance.h), and nothing else that is computed in the step; and it
//          reads data, divides by what is no power of two, or calls a function that is more than an
//          instruction or two; of a distance, any function that gives a real. The largest such
//          parts are taken; equal ones share a vector. Plain arithmetic of coordinates stays: it is
//          cheaper than a shuffle. The rows of a map that every key block runs are set once, where
//          the block of the output begins. Those of a map under a condition are set beside its
//          columns, in the time that these take: two registers less through the key loops, which
//          documents on Hopper would spill at 112 keys.
// Why      each thread would read its 28 to 32 columns one by one, wait for each, and bring each
//          index into its tensor; of a column vector a lane reads three or four, all at once. Of a
//          diagonal vector it reads six, and not 64.
// Effect   none: the same operations on the same numbers, in the same order.
#include "transfer/editing/columns.h"

#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {

bool rule_columns(Edit& edit) {
  const Facts& f = edit.facts;
  return hoist_vectors(
      edit, {f.softmax, f.score, tl::print(f.i0), [&] { return block_lets_end(edit.program, f); }});
}

}  // namespace kw::transfer
