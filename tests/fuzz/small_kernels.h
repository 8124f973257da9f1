// The corpus's kernels with tiles of a few rows and columns, so that inputs of 70 rows have several
// tiles of queries and keys, and a run takes milliseconds.
#pragma once
#include <string>
#include <vector>

#include "tl/program.h"
#include "transfer/transfer.h"

namespace kw::fuzz {

struct Kernel {
  std::string name;
  tl::Program program;
  transfer::Target target;  // its tiles have head dimensions of 16, and of 96 with values of 32
};

// Hopper's alone and in a cluster of two, and Ampere's.
std::vector<Kernel> small_kernels();

// Hopper's kernel of gradients, at its own tiles of 64 columns.
Kernel backward_kernel();

// Narrow tiles break the laws of the widths that copies and products have on a GPU, which the
// executor does not need. Is there an error of any other law?
bool breaks_a_law(const Diagnostics& d);

}  // namespace kw::fuzz
