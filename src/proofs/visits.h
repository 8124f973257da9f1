// Where a program multiplies weights with values, for blocks of any number: its *visits*.
//
// A kernel's consumer is walked once, with a symbol for each number that a launch decides: the
// block of the output, the warpgroup, the key block n of each loop within its bounds. What comes
// out is, for each place where a tile of scores is used up, which keys it is of, under which
// conditions it is reached, and which of its elements the maps have kept.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "proofs/names.h"
#include "proofs/solver/terms.h"
#include "tl/program.h"

namespace kw::proofs {

struct Visit {
  std::vector<std::string> premises;  // it is reached under these
  std::string block;                  // the loop's symbol for its key block; "" outside of loops
  std::string begin, end;             // of that loop
  bool first = false;                 // of pairs: the first turn, which stands before the loop
  std::string tile;                   // of scores
  std::optional<Term> i0, j0;         // of the tile's first element; none where no map says so
  int64_t rows = 0, columns = 0;
  Term kept;           // of its element at row i and key j
  bool again = false;  // done under a flag, in the place of another visit
  Span span;           // the statement that uses it up
};

// An integer that is computed on the way, at i and j; and the least that it may be: an index is not
// negative, nor a divisor 0 or below, for CUDA's text takes that for granted.
struct Step {
  std::vector<std::string> premises;
  Term term;
  int64_t least = INT32_MIN;
};

// What a program says of its key blocks.
struct Visits {
  std::vector<Visit> all;
  std::string list;  // the number of the list of key blocks that is read; "": none
  std::map<std::string, std::vector<std::string>> extents;  // of the user's tensors, "": unknown
  std::vector<ComputedSize> sizes;  // of the form, that the program computes
  std::vector<std::string> of_all;  // premises of the kernel: the block lies in the output
  // Of pairs: each loop over them by where it begins and ends, and whether its first turn stands
  // before it.
  std::set<std::tuple<std::string, std::string, bool>> loops;
  std::string last_pair;  // and the number of the last pair
  std::string open;       // why the walk is no picture of the program; "" where it is
};

// `sizes` gives terms for the letters of the program (B, H, G, M, N, D); "i" and "j" are the
// element's. Without a softmax, scores are weights from the first map on.
// Where blocks are of keys, rows are keys, i, and columns queries, j; turns are over pairs of a
// head and a block of queries, whose place is pairs::kPlace.
Visits visits_of(const tl::Program& program, const std::map<std::string, Term>& sizes,
                 const Blocks& blocks, bool without_softmax, Vocabulary& vocabulary);

}  // namespace kw::proofs
