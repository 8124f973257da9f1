#include "models/secret.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>
#include <set>

#include "models/providers/provider.h"
#include "support/process.h"

namespace kw::models {
namespace {

constexpr size_t kShortestSecret = 8;
constexpr double kCommandSeconds = 60;

std::mutex& mutex() {
  static std::mutex m;
  return m;
}

// Longest first: a key that begins with another is blanked whole.
struct LongestFirst {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  }
};

std::set<std::string, LongestFirst>& known() {
  static std::set<std::string, LongestFirst> values;
  return values;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  return text;
}

// A newline in a header's value would begin another header.
void demand_one_word(const std::string& value, const std::string& from) {
  for (const unsigned char c : value)
    if (c <= ' ' || c >= 127)
      throw ProviderError(ProviderError::Kind::refused_key,
                          fmt::format("the key from {} has a blank, a control character or one "
                                      "beyond ASCII in it: give the key alone, on one line",
                                      from));
}

}  // namespace

Secret::Secret(std::string value) : value_(std::move(value)) {
  if (value_.size() < kShortestSecret) return;
  const std::lock_guard lock(mutex());
  known().insert(value_);
}

std::string redacted(std::string text) {
  const std::lock_guard lock(mutex());
  for (const std::string& value : known())
    for (size_t at = 0; (at = text.find(value, at)) != std::string::npos;)
      text.replace(at, value.size(), "[key]");
  return text;
}

Secret secret_of_environment(const std::string& variable) {
  static std::map<std::string, std::string> taken;
  static std::mutex taking;
  const std::lock_guard lock(taking);
  if (char* there = getenv(variable.c_str())) {
    taken[variable] = trimmed(there);
    explicit_bzero(there, strlen(there));  // /proc/PID/environ shows this memory
    unsetenv(variable.c_str());
  }
  const std::string value = taken[variable];
  demand_one_word(value, variable);
  return Secret(value);
}

Secret secret_of_command(const std::string& command) {
  const ProcessResult run = run_process({"/bin/sh", "-c", command}, {}, kCommandSeconds);
  if (run.timed_out || run.exit_code != 0)
    throw ProviderError(
        ProviderError::Kind::refused_key,
        run.timed_out
            ? fmt::format("the key command ran past {} s: run it by itself", kCommandSeconds)
            : fmt::format("the key command ended with exit code {}: run it by itself",
                          run.exit_code));
  const std::string value = trimmed(run.out);
  if (value.empty())
    throw ProviderError(ProviderError::Kind::refused_key,
                        "the key command printed nothing: it must print the key, on one line");
  demand_one_word(value, "the key command");
  return Secret(value);
}

}  // namespace kw::models
