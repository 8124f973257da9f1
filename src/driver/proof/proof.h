// What a GPU machine needs to prove a kernel: prove.json with the true values of sampled rows. The
// cases are the family's (driver/family.h), what is written of each is the same for all (writer.h).
#pragma once
#include <filesystem>
#include <map>

#include "operator/capture/capture.h"
#include "transfer/transfer.h"

namespace kw::driver {

// Writes prove.json and its arrays into `folder`. Reports and returns false when a case cannot be
// written.
bool write_proof(const std::filesystem::path& folder, const spec::Capture& capture,
                 const transfer::Result& transferred, Diagnostics& diagnostics);

// For tuning: the golden cases, and one case that is timed, without goldens, at `sizes`: values for
// B, H, G, M and N where they are not the specification's own. Its operations count the unmasked
// entries, of 64 rows as a sample where there is a mask. Reports tune.shape for a size that the
// user's code fixes, and for an operator that is not tuned.
bool write_tuning_cases(const std::filesystem::path& folder, const spec::Capture& capture,
                        const transfer::Result& transferred,
                        const std::map<std::string, int64_t>& sizes, Diagnostics& diagnostics);

// For the prover's self-test: the probes (probes.h) at each number of keys, and nothing else.
// Reports self_test.probes where there are none.
bool write_self_test_cases(const std::filesystem::path& folder, const spec::Capture& capture,
                           const transfer::Result& transferred, const std::vector<int64_t>& lengths,
                           Diagnostics& diagnostics);

}  // namespace kw::driver
