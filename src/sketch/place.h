// Where each tile of a sketch lives, and how wide it is.
//
//   P1  what is copied from a tensor lies in shared memory: all of a block's warps read it. It is
//       as wide as the tensor; what is copied from a column on, `k[b, g, j0, 0]`, as what leaves.
//   P2  what a product writes is an accumulator in registers, as many columns wide as the tile
//       on its right has rows (a product with a transposed tile) or columns.
//   P3  what an online_max or a map over rows writes first is a row vector; what row_sum adds to is
//   a
//       lane_sum, a lane's share; what an online_max answers is a flag.
//   P4  what leaves for a tensor leaves through a shared tile: through that of the rows that came
//       in, where it has as many columns, else through one of its own.
//   P5  an accumulator that is another product's left side must become an operand first, after
//       the last statement that touches it: a to_operand is due there.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sketch/plan.h"

namespace kw::sketch {

enum class Space { shared, accumulator, operand, row, lane_sum, flag };

struct Tile {
  std::string name;
  Space space;
  bool of_keys = false;      // BN rows, one block of keys; else a warpgroup's rows
  std::string columns = "";  // a parameter, or BN
  int first_read = -1;       // by which product of the loop, in their order; -1: by none
};

struct Placed {
  std::vector<Tile> tiles;
  std::string left, leaves;           // the left side of the first product, the way out
  std::string chained, operand;       // what is reshaped, and into what; empty: no such product
  size_t reshape_after = 0;           // a statement of the loop
  std::vector<std::string> products;  // columns that each product sums over or writes
  std::string
      steps;  // the columns that the scores are summed over in steps (cut.h); empty: at once

  const Tile* find(const std::string& name) const;
};

// The name, or with underscores, as long as the program or a tile has it.
std::string fresh_name(const tl::Program& program, const Placed& placed, std::string name);

// Reports sketch.place at a statement whose tiles these rules do not place.
// `part_of_tile`: who stores can store a tile's first columns, so a wider tile will do for P4.
std::optional<Placed> place(const tl::Program& program, const Plan& plan, bool part_of_tile,
                            Diagnostics& diagnostics);

}  // namespace kw::sketch
