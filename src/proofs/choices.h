// Two ways to compute the elements of a tile, of which a condition takes one.
//
//   if uniform:
//       let everywhere = unscale * table[c.h, bucket of the tile]
//       map s[i, j] = s[i, j] + everywhere
//   if not uniform:
//       map s[i, j] = s[i, j] + unscale * table[c.h, bucket of i and j]
//
// The condition is no affair of the specification's, and need not be where both ways are one
// function of the element: the same formula over reals, after each integer in it is put for the
// specification's integer that it is equal to at every element of the tile, under the condition or
// its negation.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "proofs/names.h"

namespace kw::proofs {

// A formula with an integer or a truth at each #0, #1, ...
struct Formula {
  std::string text;
  std::vector<Term> integers;
};

// What a body of lets, vectors and maps makes of each tile, the tiles in the order of their names;
// nothing where it has other statements. `eval` gives an expression's term at i, j and d.
std::optional<Formula> formula_of(
    const std::vector<tl::Stmt>& body, Scope scope,
    const std::function<Term(const tl::ExprPtr&, const Scope&)>& eval);

// Whether both are one formula: the same but for the order of sums and products, with the same
// integers at each place of it.
bool is_same(const Formula& one, const Formula& other,
             const std::function<bool(const Term&, const Term&)>& same_integer);

}  // namespace kw::proofs
