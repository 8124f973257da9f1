// Integer expressions as sums: c + k1 * x1 + k2 * x2 + ...
//
// Sums that are written in different orders become one tree here, comparisons are solved for the
// key index, and `x // c * c + x % c` becomes x again. The atoms x are anything that is not itself
// a sum or a multiple: indices, sizes, reads, quotients, products of two unknowns.
#pragma once
#include <vector>

#include "operator/expr/expr.h"

namespace kw::spec {

struct Linear {
  struct Term {
    ExprPtr atom;
    int64_t factor;
  };
  std::vector<Term> terms;  // no factor is 0, no atom stands twice; in the order of printing
  int64_t constant = 0;

  bool is_constant() const { return terms.empty(); }
};

Linear linear(const ExprPtr& e);  // of an integer expression
Linear add(const Linear& a, const Linear& b, int64_t factor_of_b = 1);

// `i + N - M`: positive terms first; among them j, i, h, b, d, then other atoms, sizes last.
ExprPtr to_expr(const Linear& sum);

// The comparison `difference < 0` (strict) or `difference <= 0`, solved for the first term if its
// factor is +-1: `j <= i`, `i - 64 < j`, `j < prefix[b]`.
ExprPtr solved(const Linear& difference, bool strict);

}  // namespace kw::spec
