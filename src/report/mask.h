// What a mask keeps, by the tiles of a kernel: the data of a picture.
//
// The function says which entries count (its keep predicate, operator/form.h), the kernel how large
// its tiles are. Here the one is evaluated over the other: a tile of which nothing is kept is
// skipped, one that is kept whole needs no mask, the others are partial. Nothing is drawn by a
// mask's name.
//
// What a predicate reads (documents' numbers, lengths) is what the user's example_inputs() gave. An
// example of 256 tokens is two tiles wide, which shows nothing; so it is *stretched*: f times as
// many queries and keys, each number of a token repeated f times, and lengths f times as long. What
// cannot be stretched (bits in words, tables with sizes of their own) is drawn as it is. The
// picture says which it was.
//
// Interval arithmetic decides most tiles at once; the others are decided entry by entry.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/evaluate/evaluate.h"
#include "transfer/masks/predicate_intervals.h"

namespace kw::report {

struct TileSize {
  int64_t rows = 64, columns = 128;  // query rows of a warpgroup, keys of a block
};

// [first, last) of the kept keys of one row.
struct Run {
  int64_t first, last;
};

// One batch entry and head.
struct MaskPicture {
  int64_t b = 0, h = 0;
  int64_t queries = 0, keys = 0;  // that are shown: the first ones
  TileSize tile;
  std::vector<transfer::Kept> tiles;  // row by row
  std::vector<std::vector<Run>>
      kept_rows;  // of every `step`-th row, its kept keys in partial tiles
  int64_t step = 1;

  int64_t tile_rows() const { return (queries + tile.rows - 1) / tile.rows; }
  int64_t tile_columns() const { return (keys + tile.columns - 1) / tile.columns; }
  int64_t count(transfer::Kept what) const;
};

struct Masks {
  std::vector<MaskPicture> pictures;  // the first is the one to show
  int64_t stretched = 1;
  bool cropped = false;           // there are more queries or keys than are shown
  std::vector<std::string> data;  // "prefix = 68, 520": what the predicate read
  std::string absent;             // why there is no picture
};

// `examples` is what graph.json says of example_inputs().
Masks draw_masks(const spec::Form& form, const nlohmann::json& examples, TileSize tile);

}  // namespace kw::report
