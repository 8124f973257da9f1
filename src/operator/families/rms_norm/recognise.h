// From index expressions to the form of an RMS normalisation.
//
// The output's element is an expression of elements of its own row and of sums over that row. What
// it is, is decided by what it gives, not by how it is spelled (a division or a reciprocal, sqrt,
// rsqrt or a power): it is computed for numbers in the place of its reads and held against
//
//   (x + residual) rsqrt(sum / C + eps) weight,   sum over the row of (x + residual)^2.
#pragma once
#include "operator/graph/normalise.h"

namespace kw::spec {

// Nothing, and nothing said, where the first output is no function of its row and of sums over it.
// Refuses spec.rms_norm, with the line in the user's file.
std::optional<Form> recognise_rms_norm(const Graph& graph, Diagnostics& diagnostics);

}  // namespace kw::spec
