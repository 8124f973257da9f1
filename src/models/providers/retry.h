// What an endpoint's refusal means: whether it may go away by itself, when, and what to do if not.
#pragma once
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "models/providers/provider.h"
#include "models/wire/http.h"

namespace kw::models {

struct Refusal {
  ProviderError::Kind kind = ProviderError::Kind::server;
  std::string line;            // what() of the error, when it is not repeated any more
  bool repeat = false;         // the same request may succeed later
  std::optional<double> wait;  // in seconds, as the endpoint asks
};

// Where the key of a request is from ("OPENAI_API_KEY"), and whether there was one.
struct KeyPlace {
  std::string from;
  bool sent = false;
};

// An HTTP status that is not 200.
// Order: what is never repeated (401, 403, a redirect, exhausted credit); then `x-should-retry`;
// then the status: 408, 409, 429 and from 500 on.
Refusal refusal_of(const HttpHead& head, const std::string& body, const std::string& origin,
                   const KeyPlace& key);

// An error that came inside of a stream, under status 200.
Refusal refusal_in_stream(const std::string& type, const std::string& message,
                          const std::string& origin);

// A connection that did not come about, or broke.
Refusal refusal_of(const HttpEnd& end, const std::string& origin);

// `retry-after-ms`, or `retry-after` in seconds or as an HTTP date, which is held against `now`
// (seconds since 1970).
std::optional<double> asked_wait(const HttpHead& head, double now);

// Seconds before repetition `n` (from 1): `first`, doubled each time up to 8 s (or up to `first`,
// where that is more), less up to a quarter of it by `random` in [0, 1).
double backoff(int n, double first, double random);

// The longest wait that an endpoint may ask for: beyond it, there is no answer.
inline constexpr double longest_wait = 120;

}  // namespace kw::models
