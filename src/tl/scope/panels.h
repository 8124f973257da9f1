// How a tile of a 16-bit type is cut: into panels, and into the parts that the CTAs of a
// cluster fetch for each other. The law of tma_load_multicast and the launch plan ask here; the
// device does the same in cuda/kw/tile/tiles.cuh and cuda/kw/ops/copies.cuh.
#pragma once
#include <cstdint>
#include <optional>

namespace kw::tl {

// Columns of a panel: 64 (rows of 128 bytes, 128-byte swizzle) where they divide the tile's, else
// 32 (64 bytes, 64-byte swizzle).
constexpr int64_t panel_columns(int64_t columns) { return columns % 64 == 0 ? 64 : 32; }

struct Box {
  int64_t rows, columns;
  bool operator==(const Box&) const = default;
};

// What one copy of a multicast to `ctas` CTAs moves: whole panels where they can be dealt
// out evenly, else as many rows of one panel. None where these rows are no groups of 8, after which
// the swizzle's pattern begins again.
constexpr std::optional<Box> multicast_box(Box tile, int64_t ctas) {
  const int64_t panel = panel_columns(tile.columns);
  if (ctas < 1 || tile.columns < 1 || tile.columns % panel != 0) return std::nullopt;
  if (tile.columns / panel % ctas == 0) return Box{tile.rows, tile.columns / ctas};
  if (tile.rows < 1 || tile.rows % (8 * ctas) != 0) return std::nullopt;
  return Box{tile.rows / ctas, panel};
}

}  // namespace kw::tl
