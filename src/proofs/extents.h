// How long the user's tensors are, as terms.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/form.h"
#include "proofs/solver/solver.h"
#include "proofs/solver/terms.h"

namespace kw::proofs {

using Extents = std::map<std::string, std::vector<std::string>>;  // by tensor

// In the user's order of dimensions; and in that of a kernel, whose operands are batch, head, row,
// column, whatever the user's order. `sizes` gives terms for the form's names.
Extents of_user(const spec::Form& form, const std::map<std::string, Term>& sizes);
Extents of_kernel(const spec::Form& form, const std::map<std::string, Term>& sizes);

// That the lengths which a program names are those of the tensors; "" is unknown.
std::vector<std::string> same_sizes(const Extents& program, const Extents& tensors);

// A size that a launch may have as long as it likes, up to `most`, which it is held to.
struct Long {
  Term size;
  int64_t most = 0;
};

// The name of a size that these premises bound, though a launch may have a longer one: what is
// proved under them would say nothing of it. "": none.
std::string bounded(const std::vector<std::string>& premises, const Vocabulary& vocabulary,
                    const std::map<std::string, Long>& sizes, const Solver& solver);

}  // namespace kw::proofs
