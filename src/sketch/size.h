// From a sketch to a sized program: tiles get sizes, places and coordinates.
//
//   kernelwright size sketches/attention.tl --gpu l40s --param D=64 --param V=64
//
// The passes in their order: place (place.h), cut what is too wide (cut.h), choose tiles (tiles.h),
// and this file's, which writes the program:
//   Z1  the grid goes by blocks of BM rows, and by the WARPGROUPS that share one; a warpgroup's
//   first row
//       has the name that the sketch's counter of rows had.
//   Z2  the loop goes by blocks of BN keys, n; what the sketch's counter was is n * BN.
//   Z3  an accumulator that is multiplied again is reshaped, right after the last statement that
//       touches it (P5).
//   Z4  a row vector that a map writes first begins as a copy of the first vector that the map
//       reads, which its own element then stands for; copies of one vector are declared together.
//   Z5  what leaves for a tensor is stored in the tile that it leaves through, and copied from it.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "sketch/budget.h"

namespace kw::sketch {

struct Request {
  Machine machine;
  std::map<std::string, int64_t> params;  // of the sketch, to be set
  std::string element;                    // bf16 or f16; empty: the sketch's
  std::optional<Sizes> sizes = {};        // somebody's choice; none: choose_tiles() chooses
};

// The sketch with the request's parameters and element type. Reports sketch.param.
std::optional<tl::Program> with_parameters(const tl::Program& sketch, const Request& request,
                                           Diagnostics& diagnostics);

// What sizes are chosen by. Reports what size() does before it chooses.
std::optional<Work> work(const tl::Program& sketch, const Request& request,
                         Diagnostics& diagnostics);

// A sized program that obeys the laws. Reports what read_plan, place and choose_tiles (or
// hold_tiles) report, and sketch.param for a parameter that the sketch does not have.
std::optional<tl::Program> size(const tl::Program& sketch, const Request& request,
                                Diagnostics& diagnostics);

}  // namespace kw::sketch
