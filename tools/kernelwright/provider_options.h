// The options of every command that asks somebody: --provider, --api, --model, ...
#pragma once
#include <CLI/CLI.hpp>

#include "console.h"
#include "models/providers/make_provider.h"
#include "models/providers/provider.h"
#include "models/providers/recorder.h"

namespace kw::cli {

// Adds the options, in a group of their own. What the user says lands in `options`, which must
// outlive the parse; models::make_provider takes it from there.
void add_provider_options(CLI::App* command, models::Options& options);

// Who is asked. Where `transcript` names a file, everything is written down there, in place of what
// it holds or after it. Throws ProviderError.
std::unique_ptr<models::Provider> open_provider(
    const models::Options& options, const std::string& transcript,
    models::Recorder::Existing existing = models::Recorder::Existing::replace);

// Says why nobody answered (model.<kind>) and returns the exit code: 2 where the user must change
// something (bad_request, refused_key), else 3.
int finish(const models::ProviderError& error, Diagnostics& diagnostics, const Output& output);

}  // namespace kw::cli
