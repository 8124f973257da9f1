// How large tiles are: the choice of ROWS, BN and WARPGROUPS for a GPU.
//
// Of 64 and 128 rows a warpgroup (the heights of the products), 128, 64 and 32 keys a block and one
// to three warpgroups, those are possible that
//   T1  fit the shared memory, with the slots that the schedule wants (budget.h), and
//   T2  leave 63 registers of each thread beside the accumulators.
// Of these the best are chosen, by the first of these that tells two apart:
//   T3  two warpgroups on a multiprocessor or more, of one CTA or of several: one multiplies
//       while the other is in its softmax.
//   T4  the products of a block of keys, for all warpgroups of the multiprocessor, take twenty
//   times as
//       long as what it waits for: two barriers and the first product's latency. What waits in one
//       CTA, another one fills. (Two blocks of a warpgroup rather than one of two: on an
//       H200, 2026-11-23, D 128, the latter had 0.97 of the speed in full and 0.89 in causal
//       attention.)
//   T5  the least time a row and key: the longer of the products and of what is read and written
//       in shared memory. A warp reads all of the keys' tiles for its own rows, so more rows a
//       warpgroup take less of it.
//   T6  CTAs of their own rather than warpgroups of one: they do not wait at one barrier.
//   T7  more keys a block, then more rows: fewer waits and fewer copies.
#pragma once
#include <optional>
#include <string>

#include "sketch/budget.h"

namespace kw::sketch {

// Whether one of these is possible.
bool some_tiles_fit(const Machine& machine, const Work& work);

// Reports sketch.fit, for the smallest of all, where none is possible, and what product_rate does.
std::optional<Sizes> choose_tiles(const Machine& machine, const Work& work,
                                  const std::string& dtype, Diagnostics& diagnostics);

// Whether sizes that somebody else has chosen are ones that are scheduled, and fit. Reports
// sketch.tiles for a number that no product or schedule has, and sketch.fit.
bool hold_tiles(const Machine& machine, const Work& work, const Sizes& sizes,
                Diagnostics& diagnostics);

}  // namespace kw::sketch
