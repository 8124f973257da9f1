// Where a specification reads at a negative index, which PyTorch counts from the end, and no kernel
// does: `table[j - i + 20000]` from row 20001 on. Of what is computed from positions it is proved
// that there is none, at all sizes; indices that are data are taken for ones that are not negative.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "operator/form.h"
#include "proofs/solver/solver.h"
#include "proofs/solver/terms.h"

namespace kw::proofs {

// Which read may be, of those that a kept element needs; "" where there is none. `indices` gives
// terms for i, j, h, b and sizes, `extents` what is known of sizes.
std::string counted_from_the_end(const spec::Form& form, const std::map<std::string, Term>& indices,
                                 const Term& keep, const std::vector<std::string>& extents,
                                 Vocabulary& vocabulary, const Solver& solver);

}  // namespace kw::proofs
