// Of gradients: rows of queries that there are not.
//
// A block of queries may reach past the last row. What is copied from there is zeros, also as score
// and as gradient of the output; but a weight is exp2 of a score, of what the function adds of
// positions and less the row's log-sum, and what a pass before the kernel writes there as a log-sum
// is the program's. With 0 the weight of a distant key is beyond fp32's range, and infinity times 0
// is NaN in dk and dv. No case has rows so far apart, and in the exact reading x times 0 is 0. With
// -inf added every weight there is 0.
#pragma once
#include <string>

#include "tl/program.h"

namespace kw::proofs {

// Why a weight of such a row may be another number than 0; "" where it is not.
std::string weights_past_the_end(const tl::Program& program);

}  // namespace kw::proofs
