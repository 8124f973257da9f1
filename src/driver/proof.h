// What a GPU machine needs to prove a kernel: prove.json with the true values of sampled rows.
//
// Three kinds of cases. Golden cases have the shapes at which PyTorch computed truths and the
// errors of the user's own function, row by row: the accepted error of a row is twice the larger of
// that row's own error and half a unit in the last place. Large cases are sampled rows that the
// form gives in fp64; there the user's own error is not known row by row, and the median of it over
// all golden rows stands in for it.
#pragma once
#include <filesystem>
#include <map>

#include "spec/capture.h"
#include "transfer/transfer.h"

namespace kw::driver {

// Writes prove.json and its arrays into `folder`. Reports and returns false when a case cannot be
// written.
bool write_proof(const std::filesystem::path& folder, const spec::Capture& capture,
                 const transfer::Result& transferred, Diagnostics& diagnostics);

// For tuning: the golden cases, and one case that is timed, without goldens, at `sizes`: values for
// B, H, G, M and N where they are not the specification's own. Its operations count the unmasked
// entries, of 64 rows as a sample where there is a mask. Reports tune.shape for a size that the
// user's code fixes.
bool write_tuning_cases(const std::filesystem::path& folder, const spec::Capture& capture,
                        const transfer::Result& transferred,
                        const std::map<std::string, int64_t>& sizes, Diagnostics& diagnostics);

// For the prover's self-test: the probes (probes.h) at each number of keys, and nothing else.
bool write_self_test_cases(const std::filesystem::path& folder, const spec::Capture& capture,
                           const transfer::Result& transferred, const std::vector<int64_t>& lengths,
                           Diagnostics& diagnostics);

}  // namespace kw::driver
