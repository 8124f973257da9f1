// The proof of a product of matrices: what a GPU is held against (prove.json).
#pragma once
#include <filesystem>

#include "spec/capture.h"
#include "transfer/transfer.h"

namespace kw::driver {

// As write_proof() (proof.h), of a form that has a product.
bool write_product_proof(const std::filesystem::path& folder, const spec::Capture& capture,
                         const transfer::Result& transferred, Diagnostics& diagnostics);

}  // namespace kw::driver
