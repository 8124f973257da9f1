// What a form means in the exact algebra (num/exact.h): reading 2 of the specification.
//
// Inputs have names instead of values: every element of every real argument is numbered, and the
// algebra draws an element for each number. Indices, sizes, integer arguments and masks computed
// from them are what they are in fp64.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "num/exact.h"
#include "operator/evaluate/evaluate.h"

namespace kw::spec {

// The problem with the real arguments' elements numbered, from 1, instead of valued.
Problem named(const Form& form, Problem problem);

// Why the form has no exact reading (a real becomes an integer, or an index); null when it has one.
std::optional<std::string> not_exact(const Form& form);

// The products of one head's queries and keys, its scores and whether they count, all [M, N]; and
// its queries, keys and values, [M, D], [N, D] and [N, Dv].
struct ExactScores {
  std::vector<exact::Element> product, score;
  std::vector<exact::Algebra::Truth> keep;
  std::vector<exact::Element> query, key, value;
};
ExactScores exact_scores(const Form& form, const Term& term, const Problem& named,
                         const exact::Algebra& algebra, int64_t b, int64_t h);

// All rows of one head. A row without a key is as Evaluator says.
struct ExactRows {
  std::vector<exact::Element> output;           // [M, Dv]
  std::vector<exact::Element> lse;              // [M]
  std::vector<bool> uniform;                    // [M]: no key, and a finite mask: lse says nothing
  std::vector<exact::Element> columns;          // [N]: sums of the weights of each key
  std::vector<exact::Element> before_epilogue;  // [M, Dv]: what becomes the output
};
ExactRows exact_rows(const Form& form, const Problem& named, const exact::Algebra& algebra,
                     int64_t b, int64_t h);

}  // namespace kw::spec
