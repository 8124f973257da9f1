// How large a product's tiles are, and how many steps of its sum are in shared memory.
//
// Of 64 and 128 rows a warpgroup, one to three warpgroups, 256, 128 and 64 columns, steps of 64
// terms (a row of 128 bytes is what the copies swizzle) and two to four of them in shared memory,
// those are possible that
//   G1  fit the shared memory: STAGES slots of each side and the tile that the output leaves by
//       (sm_75 has one slot), and
//   G2  leave 63 registers of each thread beside the accumulator and, where warps multiply for
//       themselves, the left side of a step (on sm_75 also a step on its way to shared memory,
//       which goes through registers).
// Of these the best are chosen, by the first of these that tells two apart:
//   G3  copies under way: the products of the steps between a copy and its own product take as long
//       as a copy does. (Not on sm_75.)
//   G4  the least time a term of the sum, of three: products; what is read and written in shared
//       memory, where each warp reads the whole right side, a wgmma's four together once; and what
//       comes from the second-level cache. Where copies are asynchronous the longest counts. Where
//       they are not, a CTA's copies and products follow each other, and only another
//       CTA's run beside them.
//   G5  three steps in shared memory, then more.
//   G6  two warpgroups on a multiprocessor or more, and then fewer columns, rows and warpgroups.
#pragma once
#include <optional>
#include <string>

#include "sketch/budget.h"

namespace kw::sketch {

struct ProductSizes {
  int64_t rows, warpgroups, columns, step, stages;  // ROWS, WARPGROUPS, BN, BK, STAGES
};

// The sum line by line; tiles are a_s, b_s and the way out.
std::vector<Line> product_lines(const ProductSizes& sizes);
int64_t product_bytes(const ProductSizes& sizes);
int64_t product_registers(const Machine& machine, const ProductSizes& sizes);  // a thread

// CTAs on a multiprocessor, as many as two warpgroups need; 0: not one fits.
int64_t product_resident(const Machine& machine, const ProductSizes& sizes);

// Registers of a thread: of the warpgroup that loads, and of those that multiply beside it
// (sm_90a).
struct EngineRegisters {
  int64_t loader, warpgroup;
};
EngineRegisters engine_registers(int64_t warpgroups);

// Reports sketch.fit for the smallest of all where none is possible, and what product_rate does.
std::optional<ProductSizes> choose_product_tiles(const Machine& machine, const std::string& dtype,
                                                 Diagnostics& diagnostics);

// Whether sizes that somebody edited are ones that are scheduled, and fit. Reports sketch.tiles for
// a number that no product or schedule has, and sketch.fit with the sum and the smallest change:
// fewer stages, then fewer columns, warpgroups and rows.
bool hold_product_tiles(const Machine& machine, const ProductSizes& sizes, Span span,
                        Diagnostics& diagnostics);

}  // namespace kw::sketch
