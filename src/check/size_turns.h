// Sizes at which what a program does with integers turns, whether or not they stand anywhere.
//
//   K >> 14                        turns where K is 16384
//   ceil_div(K, 64) - K * K // 200000000     where K is 14143
//   where(M * N > 1 << 22, ..)     where M and N are 2049
//   c.b - (c.b >> 9)               where an integer that no size decides is 512
//
// Every decision of the program (integers.h) is evaluated along lines: one variable grows, or two
// sizes do, or all. Where what it says is the same for long and then another, the place is found by
// halving. What turns at every tile has no such place.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/integers.h"

namespace kw::check {

// By the program's names: the sizes that grow, all alike, and those that stay as they are.
struct SizeTurn {
  std::map<std::string, int64_t> grown, others;
  int64_t at = 0;        // of what grows
  bool of_data = false;  // and so do elements of data
  int decision = 0;      // by number, of those that turn
  bool operator<(const SizeTurn& o) const {
    return std::tie(decision, grown, others, of_data) <
           std::tie(o.decision, o.grown, o.others, o.of_data);
  }
};

struct Turns {
  std::set<SizeTurn> of_sizes;
  std::set<int64_t> of_others;  // of blocks' numbers, counters, indices and data
};

// `tiles`: a program's tiles, whose edges are of no interest.
Turns turns_of(const tl::Program& program, const std::set<int64_t>& tiles);

}  // namespace kw::check
