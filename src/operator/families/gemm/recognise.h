// From index expressions to the form of a product: the sibling of recognise.h.
//
// The output's element is an expression of one sum over products of two arguments' elements, or the
// sum of such elements over one dimension. Which index is the row, the column, the batch is decided
// by which side is read at it, never by position.
#pragma once
#include "operator/graph/normalise.h"

namespace kw::spec {

// Nothing, and nothing said, where the function holds no product of two arguments outside of any
// other reduction but a sum of its rows. Refuses, with the line in the user's file: spec.product,
// spec.operand, spec.heads.
std::optional<Form> recognise_gemm(const Graph& graph, Diagnostics& diagnostics);

}  // namespace kw::spec
