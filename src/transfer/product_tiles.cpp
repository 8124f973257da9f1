// A product has no sizes that a row is looked up by: the first row for the target counts.
#include "transfer/product_tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "transfer/facts.h"

namespace kw::transfer {

bool product_tiles(Result& result, const Target& target, Diagnostics& diagnostics) {
  std::vector<const Tiles*> rows;
  for (const Tiles& t : target.tiles)
    if (t.of_product() && t.is_for(target.name)) rows.push_back(&t);
  if (rows.empty()) return true;
  const size_t tried = std::min(static_cast<size_t>(target.tried), rows.size() - 1);
  result.roomier = tried + 1 < rows.size();
  result.tiles = rows[tried]->place;
  for (const Constant& c : rows[tried]->constants) {
    tl::Item* d = constant_named(result.program, c.name);
    if (!d) {
      diagnostics
          .error("transfer.kernel", {},
                 fmt::format("this kernel has no constant {}, which its tiles set ({})", c.name,
                             result.tiles))
          .hint = "rows are for one kernel's text: see its targets";
      return false;
    }
    const int64_t* number = std::get_if<int64_t>(&c.value);
    d->expr = number ? tl::integer(*number) : tl::name(text_of(c.value));
  }
  return true;
}

}  // namespace kw::transfer
