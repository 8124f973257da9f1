// From a sketch of a product to a sized program.
//
//   kernelwright size sketches/product.tl --gpu a100
//
//   N1  both sides lie in shared memory, BK terms of the sum at a time, the accumulator in
//       registers, and the output leaves by a shared tile of its own: it is wider than the left
//       side, and the next tile's copies may be under way.
//   N2  the grid goes by tiles of BM rows and BN columns (how many there are the arguments say:
//       rows, columns, blocks), downwards first, and by the WARPGROUPS that share one; a
//       warpgroup's first row and the tile's first column have the names that the sketch's counters
//       had.
//   N3  the loop goes by steps of BK terms, k; what the sketch's counter was is k * BK.
#pragma once
#include <optional>

#include "sketch/size.h"

namespace kw::sketch {

// `given`: with the request's parameters and element type. Reports what read_product and
// choose_product_tiles report, and sketch.tiles for a request that has tiles: they are attention's.
std::optional<tl::Program> size_product(const tl::Program& given, const Request& request,
                                        Diagnostics& diagnostics);

}  // namespace kw::sketch
