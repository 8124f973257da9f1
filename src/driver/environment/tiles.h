// Where a run's tiles come from: the files of the tile database, in the order in which they count.
//
//   1. the file that the user names (--tiles FILE)
//   2. the file that KERNELWRIGHT_TILES names
//   3. kernels/<arch>/tiles.json, shipped beside each expert text; a row's targets say which text
//      it is for
// A text whose tiles no other text has, has a file of its own: kernels/sm80/latent_fwd.tiles.json.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "driver/environment/home.h"
#include "transfer/tile_database.h"

namespace kw::driver {

// All rows, best first; those of 1 and 2 are marked as the user's. `file` may be empty. Reports
// tiles.read for a named file that cannot be read, and what read_tiles reports.
std::optional<std::vector<transfer::Tiles>> find_tiles(const Home& home, const std::string& file,
                                                       Diagnostics& diagnostics);

// Rows for one text alone, whose file stands beside it; none where it has none. `text` as
// own_experts names it.
std::optional<std::vector<transfer::Tiles>> tiles_of_text(const Home& home, const std::string& text,
                                                          Diagnostics& diagnostics);

}  // namespace kw::driver
