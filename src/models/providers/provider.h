// Whoever answers a question: a model behind an endpoint, a person through a folder, a recording.
//
// A stage asks, gets text, and believes none of it: answers go through the same laws and checks as
// what the rules propose. A provider knows nothing of kernels, a stage nothing of HTTP.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace kw::models {

struct Request {
  std::string stage;         // "transfer", "lift", "lower": which prompt this is
  int attempt = 1;           // of one conversation, from 1
  int sample = 1;            // of those asked the same in parallel, from 1
  std::string system, user;  // UTF-8
  nlohmann::json schema;     // JSON Schema of the answer, or null; some providers ignore it
  int most_tokens = 16384;   // of the answer
};

struct Answer {
  std::string text;      // as it came: perhaps no UTF-8, perhaps cut off
  std::string who;       // the model that the endpoint names, or "by hand", or as recorded
  bool complete = true;  // false: it ran into most_tokens or the byte limit
  long tokens_in = 0, tokens_out = 0;  // as the endpoint counts; 0 where it does not say
  double dollars = 0;                  // 0 where no price is known
};

// Why there is no answer. `what()` is one line that says what to do and never holds a key.
class ProviderError : public std::runtime_error {
 public:
  enum class Kind {
    unreachable,
    refused_key,
    rate_limited,
    bad_request,
    server,
    timeout,
    malformed,
    budget
  };
  ProviderError(Kind kind, const std::string& line) : std::runtime_error(line), kind(kind) {}
  Kind kind;
};

class Provider {
 public:
  virtual ~Provider() = default;
  // Waits. `heard` gets the bytes so far of a streamed answer; what it throws ends the request.
  // Throws ProviderError. May be called from several threads at once.
  virtual Answer ask(const Request& request, const std::function<void(size_t)>& heard) = 0;
};

}  // namespace kw::models
