// What depends on the key alone, the query alone, or their distance alone, is computed once and not
// for every score: the forward rule (attention/rules/columns.cpp), of a tile of keys by queries.
//
//   map_at s[i, j] from (j0, m * BM) = where(document[c.b, j] == document[c.b, i] and ..., s[i, j],
//   -inf)
//     ->   row document_i: i32[64]                                    (behind `let j0`)
//          set_rows document_i[i] from j0 = document[c.b, i]
//          column document_j: i32[BM]                                 (before the map)
//          set_columns document_j[j] from m * BM = document[c.b, j]
//          map_at ... = where(document_j[j] == document_i[i] and ..., s[i, j], -inf)
//
// When     as there. The keys of a CTA are the same for all of its queries: rows are set once.
// Effect   none: the same operations on the same numbers, in the same order.
#include "transfer/editing/columns.h"

#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

// Behind the declaration of a warpgroup's first key, which is the last of the block's.
Place behind_first_key(tl::Program& program) {
  Place out{nullptr, 0};
  tl::walk(program.body, [&](tl::Stmt& s) {
    for (size_t n = 0; n < s.body.size(); ++n)
      if (s.body[n].op == tl::Op::let && s.body[n].names()[0].name == "j0") out = {&s.body, n + 1};
  });
  return out;
}

}  // namespace

bool rule_columns(Edit& edit) {
  const auto places = edit.places();
  if (!behind_first_key(edit.program).block) return true;
  return hoist_vectors(edit, {places->step_name, places->score, "j0",
                              [&] { return behind_first_key(edit.program); }, true});
}

}  // namespace kw::transfer::bwd
