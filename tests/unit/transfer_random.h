// Random keep predicates: what people write, and what nobody would.
#pragma once
#include <random>

#include "operator/expr/expr.h"

namespace kw::transfer {

// Over i, j, b, the sizes M and N, a scalar `window` and the tensors prefix[b] and last[b].
class Predicates {
 public:
  explicit Predicates(uint64_t seed) : random_(seed) {}

  spec::ExprPtr predicate(int depth);
  // Keys from 0 on, and a window: with a hole between them in most rows.
  spec::ExprPtr window_and_first();
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }

 private:
  std::mt19937_64 random_;
  spec::ExprPtr integer(int depth);
  spec::ExprPtr leaf();
};

}  // namespace kw::transfer
