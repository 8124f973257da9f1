// The kinds of ProviderError by name, and which exit code each is.
#pragma once
#include <optional>
#include <string>

#include "models/providers/provider.h"
#include "support/diagnostic.h"

namespace kw::models {

// "refused_key": as the enumerator is spelled; so transcripts and diagnostics have it.
const char* name(ProviderError::Kind kind);
std::optional<ProviderError::Kind> kind_named(const std::string& name);

// bad_input where the user must change something (bad_request, refused_key); else inconclusive: no
// answer is no verdict.
Exit exit_of(ProviderError::Kind kind);

}  // namespace kw::models
