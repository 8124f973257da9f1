// What can be said about a provider: one table, which the command line and the JSON file share.
//
// A setting is `first_byte_seconds` in a file and `--first-byte-seconds` on a command line. Keys
// are no setting: only where to find one is.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "models/providers/make_provider.h"

namespace kw::models {

struct Settings {
  std::string api = "chat", model, endpoint, key_env, key_command;
  bool allow_http = false;
  nlohmann::json body = nlohmann::json::object();
  // Budgets of all requests together; 0: none.
  long budget_calls = 0, budget_tokens = 0;
  double budget_dollars = 0;
  double price_in = -1, price_out = -1;  // dollars for a million tokens; below 0: unknown
  int retries = 4;
  double retry_wait = 0.5;
  double connect_seconds = 10, first_byte_seconds = 600, idle_seconds = 120, whole_seconds = 3600;
  long most_bytes = 32 << 20;
  double wait_seconds = 0;
};

enum class SettingType { text, number, count, flag, object };

struct Setting {
  const char* name;
  SettingType type;
  const char* help;
};

std::span<const Setting> settings_table();

// Defaults, then the file, then what was said. Throws ProviderError (bad_request) for an unknown
// name, a value of another type, a number below 0, and options that contradict each other.
Settings read_settings(const Options& options);

}  // namespace kw::models
