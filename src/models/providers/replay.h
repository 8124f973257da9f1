// Answers from a transcript, without a network: the same bytes, the same errors, the same names.
#pragma once
#include <filesystem>
#include <memory>

#include "models/budget.h"
#include "models/providers/provider.h"

namespace kw::models {

// Records with one key are given in their order. Throws ProviderError (bad_request) for a file that
// is no transcript; a request that is not recorded, or not that often, ends in one that shows where
// the nearest record differs.
std::unique_ptr<Provider> make_replay(const std::filesystem::path& file,
                                      std::shared_ptr<Budget> budget);

}  // namespace kw::models
