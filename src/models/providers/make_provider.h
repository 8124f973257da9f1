// From options to a provider: the one way in which every command gets somebody to ask.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "models/providers/provider.h"

namespace kw::models {

// What a user said about whom to ask. What stands in `said` wins over the same name in the file;
// src/models/settings.h has the names, their meanings and defaults.
struct Options {
  std::string file;                                // a JSON object of settings; may be empty
  nlohmann::json said = nlohmann::json::object();  // setting -> value, from the command line

  bool given() const { return !file.empty() || !said.empty(); }
};

// Reads the settings, takes the key out of the environment (or asks the user's command for it) and
// opens nothing else: the first request does. Throws ProviderError: bad_request for settings that
// contradict each other or name what is not there, refused_key where a key is due and none found.
std::unique_ptr<Provider> make_provider(const Options& options);

}  // namespace kw::models
