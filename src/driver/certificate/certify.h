// What a GPU said of a kernel becomes part of its folder: `kernelwright certify`, and `make --gpu`.
#pragma once

#include <filesystem>
#include <string>

#include "support/diagnostic.h"

namespace kw::driver {

// Whether kernelwright-prove, whose --json report this is, got as far as a GPU.
bool ran_on_gpu(const std::string& proof);

// Keeps the report as gpu.json, adds it to the certificate, whose verdict is the GPU's from now on,
// and writes the page about both again. Reports certificate.* where the folder's certificate cannot
// be read or the report is not about its cubin, report.files where a file was changed since, and
// cli.write.
bool certify(const std::filesystem::path& folder, const std::string& proof,
             Diagnostics& diagnostics);

// Runs kernelwright-prove on the folder, for at most `seconds`, and certifies what this machine's
// GPU said. `said` gets the prover's table.
Exit prove_here(const std::filesystem::path& folder, int seconds, std::string& said,
                Diagnostics& diagnostics);

}  // namespace kw::driver
