// That each block of the output is computed by exactly one block of the launch.
//
// A launch numbers its blocks, and a function of the program says which block of the output a
// number is. Such functions take a number's digits apart: w % rows, w // rows % H, w // rows // H.
// So a number is followed as digits with a size each, which `%` and `//` part and `a * T + b`
// joins; a size is a product of factors (rows, H, B). Where m, h and b have all digits of w, each
// once, and as many values as there are rows of blocks, heads and entries, the function is one to
// one.
#pragma once
#include <map>
#include <string>

#include "proofs/names.h"
#include "proofs/solver/terms.h"
#include "tl/program.h"

namespace kw::proofs {

// Why that is not so, or not seen; "" where it is.
std::string disorder(const tl::Program& program, const std::map<std::string, Term>& sizes,
                     const Blocks& blocks, Vocabulary& vocabulary);

// Why blocks of rows of one head and entry may be launched in another order than that of their
// numbers, or not be seen; "" where they are not: a launch takes its blocks one after another, and
// the block of rows is one digit of their number.
std::string falling(const tl::Program& program, const std::map<std::string, Term>& sizes,
                    const Blocks& blocks, Vocabulary& vocabulary);

}  // namespace kw::proofs
