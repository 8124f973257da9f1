// What is one value in a whole tile of scores, whatever the sizes and the data.
//
// A tile's rows are i = i0 + r with 0 <= r < 64, its keys j = j0 + s with 0 <= s < BN, and where
// the tile begins is known to be a multiple of something: i0 = c.m * BM + (cta * WARPGROUPS + me) *
// 64 of 64, n * BN of BN. So an integer is a sum x = i0 + r + ... whose multiples of g, the
// greatest common divisor of all that is not known, leave a remainder that is; and x // d is one
// value where r and s never carry that remainder over a multiple of g, which divides d: i // 128 in
// a tile of 64 rows, j // 128 in one of 128 keys and not of 112. A comparison is where its
// difference never crosses 0 within a tile: i < 256.
//
// families/attention/rules/uniform.cpp asks the same of one tile, while the kernel runs; here it is
// proved for all.
#pragma once
#include <functional>
#include <optional>

#include "tl/scope/scope.h"
#include "transfer/families/attention/facts.h"

namespace kw::transfer {

// A coordinate of a tile: `count` neighbours, the first of them a multiple of `divisor`.
struct Axis {
  int64_t count, divisor;
};

// A number that divides the integer e for sure, the greatest that its form shows; 0 of the constant
// 0, which everything divides. `scope` says what its names stand for.
int64_t divisor_of(const tl::ExprPtr& e, const tl::Scope& scope);

// Expressions over the coordinates i and j of a map_at, ints.
class TileValues {
 public:
  TileValues(Axis i, Axis j, const tl::Scope& scope) : i_(i), j_(j), scope_(scope) {}

  // Whether e is the same for every row and key of any one tile. What e has beside i and j must be:
  // no element of a tile or a vector.
  bool is_one(const tl::ExprPtr& e) const;

 private:
  // i * (a row) + j * (a key) + constant + something that `divisor` divides (0: nothing).
  struct Sum {
    int64_t i = 0, j = 0, constant = 0, divisor = 0;
  };
  std::optional<Sum> sum_of(const tl::ExprPtr& e) const;
  std::optional<Sum> sum_of_remainder(const tl::ExprPtr& x, const tl::ExprPtr& d) const;
  std::optional<int64_t> constant_of(const tl::ExprPtr& e) const;
  bool is_one_quotient(const Sum& x, int64_t d) const;
  bool is_one_quotient(const tl::ExprPtr& x, int64_t d) const;
  bool is_one_comparison(const tl::Expr& e) const;

  const Axis i_, j_;
  const tl::Scope& scope_;
};

// Calls `use` with what is known of the tiles of this map_at of the scores, a statement of the
// program; not at all where their size is no constant.
void with_tile_values(const tl::Program& program, const Facts& facts, const tl::Stmt& map,
                      const std::function<void(const TileValues&)>& use);

}  // namespace kw::transfer
