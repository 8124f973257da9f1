// The plan of a product of matrices, taken apart, at both of its levels: one grid over tiles of the
// output, one loop over blocks of the sum with one product in it.
//
//   M1  a sketch's grid counts batch entries, products of one, rows and columns of the output; a
//       sized plan's tiles downwards and across, products, batch entries, and warpgroups.
//   M2  what the loop adds to is filled before it, and nothing else stands there.
//   M3  the loop copies two tiles from tensors of four dimensions, and its last statement adds
//       their product; each of them is one of its sides.
//   M4  after the loop the accumulator leaves for an `out` tensor (in a sized plan by a tile that
//       it is stored in), and nothing else happens: what becomes of elements, rules write.
#pragma once
#include <optional>
#include <string>

#include "sketch/plan.h"

namespace kw::sketch {

struct Product {
  Plan plan;
  const tl::Stmt *fill = nullptr, *left = nullptr, *right = nullptr, *product = nullptr;
  const tl::Stmt *store = nullptr, *out = nullptr;               // a sketch has no store
  const tl::Stmt *first_row = nullptr, *first_column = nullptr;  // the lets of a sized plan
  std::string acc, a_s, b_s;
};

// Whether the plan's loops have one product, which adds up, and no to_operand: attention has two.
bool is_product(const tl::Program& program);

// Reports what read_plan reports, and sketch.shape at the statement that breaks M1 to M4.
std::optional<Product> read_product(const tl::Program& program, const std::string& level,
                                    Diagnostics& diagnostics);

}  // namespace kw::sketch
