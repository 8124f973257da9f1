// Keys of endpoints, which must never be seen.
//
// A Secret cannot be printed, compared or turned into JSON; `reveal` is called in one place, where
// a request's headers are written. Every Secret's value is also known to `redacted`, through which
// all goes that came from an endpoint or goes to a file: a server that repeats a key in an error or
// an answer cannot put it into a transcript.
#pragma once
#include <string>

namespace kw::models {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value);

  bool empty() const { return value_.empty(); }
  const std::string& reveal() const { return value_; }

 private:
  std::string value_;
};

// `text` with each known key as "[key]". Values under eight bytes are no secrets ("none", "EMPTY":
// what local servers are given) and stay.
std::string redacted(std::string text);

// The value of an environment variable, which is then gone from the environment, so that no child
// process inherits it; asked again, it gives the same. Empty where there was none. Not to be called
// while other threads read the environment.
Secret secret_of_environment(const std::string& variable);

// What a command prints, without the newline at its end. Throws ProviderError (refused_key) with
// the command's exit code, and never with what it printed.
Secret secret_of_command(const std::string& command);

}  // namespace kw::models
