#include "models/settings.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "support/source.h"

namespace kw::models {
namespace {

using Json = nlohmann::json;

constexpr Setting kTable[] = {
    {"api", SettingType::text,
     "who is asked: chat, responses or anthropic (an endpoint's protocol), folder:DIR (a person), "
     "replay:FILE (a transcript); chat where nothing is said"},
    {"model", SettingType::text, "the model, as the endpoint calls it"},
    {"endpoint", SettingType::text,
     "where it is, e.g. http://localhost:8000/v1; left out: the API's own vendor"},
    {"key_env", SettingType::text,
     "the environment variable with the key; left out: OPENAI_API_KEY or ANTHROPIC_API_KEY"},
    {"key_command", SettingType::text, "a shell command that prints the key"},
    {"allow_http", SettingType::flag, "allow http:// to other machines, where anyone can listen"},
    {"body", SettingType::object,
     "a JSON object of more fields for each request, e.g. '{\"temperature\": 0}'"},
    {"budget_calls", SettingType::count, "at most so many requests, repeated ones included"},
    {"budget_tokens", SettingType::count, "at most so many tokens, read and written"},
    {"budget_dollars", SettingType::number, "at most so many dollars, at --price-in, --price-out"},
    {"price_in", SettingType::number, "dollars for a million tokens that the model reads"},
    {"price_out", SettingType::number, "dollars for a million tokens that the model writes"},
    {"retries", SettingType::count, "how often a request that may succeed later is repeated (4)"},
    {"retry_wait", SettingType::number,
     "seconds before the first repetition, doubled each time up to 8 (0.5)"},
    {"connect_seconds", SettingType::number, "at most, to reach the endpoint (10)"},
    {"first_byte_seconds", SettingType::number, "at most, until its answer begins (600)"},
    {"idle_seconds", SettingType::number, "at most, between two parts of an answer (120)"},
    {"whole_seconds", SettingType::number, "at most, for one request (3600)"},
    {"most_bytes", SettingType::count,
     "of an answer on its way; one that is longer is cut (32 Mi)"},
    {"wait_seconds", SettingType::number,
     "how long to wait for an answer in a folder (0: not at all)"},
};

[[noreturn]] void refuse_setting(const std::string& line) {
  throw ProviderError(ProviderError::Kind::bad_request, line);
}

const char* words(SettingType type) {
  switch (type) {
    case SettingType::text:
      return "a text";
    case SettingType::number:
      return "a number from 0";
    case SettingType::count:
      return "a whole number from 0";
    case SettingType::flag:
      return "true or false";
    case SettingType::object:
      return "an object";
  }
  return "";
}

bool fits(const Json& value, SettingType type) {
  switch (type) {
    case SettingType::text:
      return value.is_string();
    case SettingType::number:
      return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
    case SettingType::count:
      return value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() < 1e15;
    case SettingType::flag:
      return value.is_boolean();
    case SettingType::object:
      return value.is_object();
  }
  return false;
}

void demand_known(const Json& settings, const std::string& from) {
  if (!settings.is_object())
    refuse_setting(fmt::format("{} is not a JSON object of settings", from));
  for (const auto& [name, value] : settings.items()) {
    const Setting* found = nullptr;
    for (const Setting& s : kTable)
      if (name == s.name) found = &s;
    if (!found)
      refuse_setting(fmt::format("{} has a setting '{}', which there is not", from, name));
    if (!fits(value, found->type))
      refuse_setting(fmt::format("{}: '{}' is {}, and must be {}", from, name,
                                 value.dump(-1, ' ', false, Json::error_handler_t::replace),
                                 words(found->type)));
  }
}

Json read_file(const std::string& file) {
  const SourcePtr source = read_source(file);
  if (!source) refuse_setting(fmt::format("cannot read '{}': {}", file, std::strerror(errno)));
  const Json settings = Json::parse(source->text, nullptr, false);
  if (settings.is_discarded()) refuse_setting(fmt::format("'{}' is not JSON", file));
  demand_known(settings, fmt::format("'{}'", file));
  return settings;
}

template <typename T>
void take(const Json& settings, const char* name, T& into) {
  if (settings.contains(name)) into = settings[name].get<T>();
}

void demand_agreement(const Settings& s) {
  if (!s.key_env.empty() && !s.key_command.empty())
    refuse_setting("a key is to come from --key-env and from --key-command: give one of them");
  if (s.budget_dollars > 0 && (s.price_in < 0 || s.price_out < 0))
    refuse_setting(fmt::format(
        "a budget of {} dollars and no price: give --price-in and --price-out", s.budget_dollars));
  for (const char* ours : {"messages", "input", "model", "stream", "system", "instructions"})
    if (s.body.contains(ours))
      refuse_setting(
          fmt::format("--body has '{}', which is set by the request itself: leave it out", ours));
}

}  // namespace

std::span<const Setting> settings_table() { return kTable; }

Settings read_settings(const Options& options) {
  Json all = options.file.empty() ? Json::object() : read_file(options.file);
  demand_known(options.said, "the command line");
  all.update(options.said);
  Settings s;
  take(all, "api", s.api);
  take(all, "model", s.model);
  take(all, "endpoint", s.endpoint);
  take(all, "key_env", s.key_env);
  take(all, "key_command", s.key_command);
  take(all, "allow_http", s.allow_http);
  take(all, "body", s.body);
  take(all, "budget_calls", s.budget_calls);
  take(all, "budget_tokens", s.budget_tokens);
  take(all, "budget_dollars", s.budget_dollars);
  take(all, "price_in", s.price_in);
  take(all, "price_out", s.price_out);
  take(all, "retries", s.retries);
  take(all, "retry_wait", s.retry_wait);
  take(all, "connect_seconds", s.connect_seconds);
  take(all, "first_byte_seconds", s.first_byte_seconds);
  take(all, "idle_seconds", s.idle_seconds);
  take(all, "whole_seconds", s.whole_seconds);
  take(all, "most_bytes", s.most_bytes);
  take(all, "wait_seconds", s.wait_seconds);
  demand_agreement(s);
  return s;
}

}  // namespace kw::models
