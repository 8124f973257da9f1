// What the steps of find_parts() share: sums, products and their reads.
#pragma once
#include "operator/expr/places.h"
#include "operator/recognise/recognise.h"

namespace kw::spec {

// The distinct reads of reduced nodes in e; two reads of one node at other indices are two.
std::vector<ExprPtr> reduced_reads(const ExprPtr& e);

// e as a product of factors and a constant; -x is x times -1, x / y has the factor 1 / y.
void factors_of(const ExprPtr& e, std::vector<ExprPtr>& out, double& constant);
ExprPtr product(const std::vector<ExprPtr>& factors, double constant);

bool is_argument_read(const ExprPtr& e);

// From `weighted`, what the contraction sums: sets v, normaliser, sink, what is normalised, and
// what of the epilogue is left when the division by a sum of weights is taken out of it.
bool find_normaliser(Elements& elements, Parts& parts, const ExprPtr& weighted,
                     Diagnostics& diagnostics);

}  // namespace kw::spec
