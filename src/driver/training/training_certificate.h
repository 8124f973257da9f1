// certificate.json of a folder for training: what its two halves' certificates say together, what
// each gradient was held against, what passes from the one launch to the other, and what all that
// takes of memory. docs/certificate.md explains each field, docs/certificate.training.schema.json
// is its form.
#pragma once
#include "driver/training/halves.h"

namespace kw::driver {

// All but the files and their root.
Claims training_claims(const Both& both);

// With the files below `folder`, of which report.html is written last.
Claims training_certificate(const Both& both, const std::filesystem::path& folder);

// What the tensors of one forward and one backward pass take: "arguments 96 MB, ..." for a line.
std::string memory_line(const Claims& training);

// The lines that say what holds, one a half.
std::string half_line(const Claims& training, const std::string& half);

}  // namespace kw::driver
