// The integers that a program is written with, and what each may count: rows and keys, blocks of
// them, batch entries, steps of a product.
//
//   let m = queries.first + x % 100              numbers: 100
//   min(ceil_div(N, BN), D * 2)                  bounds: 256, with D = 128
//   c.n - BN >= 0                                bounds: 128
//   (c.n + 1) * BN > N                           none: a tile's edge is where all tiles are
//   c.b - (c.b >> 9)                             numbers and bounds: 512
//
// A number by which a program decides something stands beside what it is compared with, bounded by
// or divided by: there parameters and what is computed of them count like numbers that are written
// out. Elsewhere tiles' sizes and multiples of 16 say where a tile is. What is computed of numbers
// alone is one (`1 << 14`), also through names and functions, a shift to the right is a division,
// and bits that are kept are a remainder. Where sizes turn that stand nowhere, size_turns.h finds.
#pragma once
#include <cstdint>
#include <set>

#include "check/size_turns.h"
#include "tl/program.h"

namespace kw::check {

// Cases of fewer rows and keys run anyway; and no case has more.
constexpr int64_t kCovered = 256, kFarthest = int64_t{1} << 20;

struct ProgramNumbers {
  std::set<int64_t> numbers;  // all but parameters, and what is divided by several of them in turn
  std::set<int64_t> bounds;   // what another integer is compared with, bounded or divided by
  std::set<int64_t> tiles, steps;  // of the parameters the tiles' sizes, and a product's step
  std::set<int64_t> counts;        // what a function of the program's counts blocks by, and what a
                                   // size is a multiple of: `R: size = B * 16`
  std::set<SizeTurn> turns;        // sizes of the launch at which a decision turns
};
ProgramNumbers numbers_of(const tl::Program& program);

}  // namespace kw::check
