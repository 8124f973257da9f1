// The options of every command that asks somebody: --provider, --api, --model, ...
#pragma once
#include <CLI/CLI.hpp>

#include "console.h"
#include "models/make_provider.h"
#include "models/provider.h"

namespace kw::cli {

// Adds the options, in a group of their own. What the user says lands in `options`, which must
// outlive the parse; models::make_provider takes it from there.
void add_provider_options(CLI::App* command, models::Options& options);

// Says why nobody answered (model.<kind>) and returns the exit code: 2 where the user must change
// something (bad_request, refused_key), else 3.
int finish(const models::ProviderError& error, Diagnostics& diagnostics, const Output& output);

}  // namespace kw::cli
