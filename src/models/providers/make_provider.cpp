#include "models/providers/make_provider.h"

#include <fmt/format.h>

#include "models/providers/endpoint.h"
#include "models/providers/folder.h"
#include "models/providers/replay.h"
#include "models/settings.h"

namespace kw::models {
namespace {

// "folder:DIR" -> "DIR".
std::string after(const std::string& api, const char* prefix) {
  const std::string what = api.substr(std::string(prefix).size());
  if (what.empty())
    throw ProviderError(ProviderError::Kind::bad_request,
                        fmt::format("--api {} names no path after the colon", api));
  return what;
}

}  // namespace

std::unique_ptr<Provider> make_provider(const Options& options) {
  const Settings settings = read_settings(options);
  const auto budget = std::make_shared<Budget>(settings);
  if (settings.api.starts_with("folder:"))
    return make_folder(after(settings.api, "folder:"), settings.wait_seconds, budget);
  if (settings.api.starts_with("replay:"))
    return make_replay(after(settings.api, "replay:"), budget);
  return make_endpoint(settings, budget);
}

}  // namespace kw::models
