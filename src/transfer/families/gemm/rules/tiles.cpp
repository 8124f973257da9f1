// The constants that were measured best for the target.
//
//   param BM = 128, BN = 256, BK = 64  ->  param BM = 128, BN = 128, BK = 32
//
// When     a row of the tile database is for the target: a product has no sizes that a row is
// looked
//          up by, so the first one counts, and where it left too few registers the next.
// Effect   none: they decide in which order sums are taken.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/editing/declarations.h"
#include "transfer/families/gemm/rules/rules.h"

namespace kw::transfer::gemm {

bool rule_tiles(Edit& edit) {
  std::vector<const Tiles*> rows;
  for (const Tiles& t : edit.target.tiles)
    if (t.of_product() && t.is_for(edit.target.name)) rows.push_back(&t);
  if (rows.empty()) return true;
  const size_t tried = std::min(static_cast<size_t>(edit.target.tried), rows.size() - 1);
  edit.result.roomier = tried + 1 < rows.size();
  edit.result.tiles = rows[tried]->place;
  for (const Constant& c : rows[tried]->constants) {
    tl::Item* d = constant_named(edit.result.program, c.name);
    if (!d) {
      return edit.refuse("transfer.kernel", {},
                         fmt::format("this kernel has no constant {}, which its tiles set ({})",
                                     c.name, edit.result.tiles),
                         "rows are for one kernel's text: see its targets");
    }
    const int64_t* number = std::get_if<int64_t>(&c.value);
    d->expr = number ? tl::integer(*number) : tl::name(text_of(c.value));
  }
  return true;
}

}  // namespace kw::transfer::gemm
