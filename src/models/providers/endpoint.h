// A model behind an HTTP endpoint.
#pragma once
#include <memory>

#include "models/budget.h"
#include "models/providers/provider.h"
#include "models/settings.h"

namespace kw::models {

// `settings.api` is chat, responses or anthropic. Throws ProviderError as make_provider says.
std::unique_ptr<Provider> make_endpoint(const Settings& settings, std::shared_ptr<Budget> budget);

}  // namespace kw::models
