#include "models/providers/retry.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace kw::models {
namespace {

using Json = nlohmann::json;
using Kind = ProviderError::Kind;

constexpr size_t kMostWords = 200;

// Codes and types that no waiting mends.
const std::set<std::string>& exhausted() {
  static const std::set<std::string> all = {"insufficient_quota",
                                            "credit_balance_exhausted",
                                            "billing_error",
                                            "organization_spend_limit_exceeded",
                                            "project_spend_limit_exceeded",
                                            "organization_usage_limit_exceeded",
                                            "billing_hard_limit_reached"};
  return all;
}

const std::set<std::string>& passing() {
  static const std::set<std::string> all = {"overloaded_error",
                                            "api_error",
                                            "server_error",
                                            "internal_error",
                                            "server_is_overloaded",
                                            "timeout_error",
                                            "rate_limit_error",
                                            "rate_limit_exceeded",
                                            "slow_down"};
  return all;
}

// One line of at most kMostWords bytes.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
  if (text.size() > kMostWords) {
    size_t end = kMostWords;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end) + "...";
  }
  return text;
}

struct Said {
  std::string message, type, code;
};

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// {"error": {"message", "type", "code"}}, {"error": "..."}, {"message": "..."}, or any text.
Said said_by(const std::string& body) {
  const Json all = Json::parse(body, nullptr, false);
  if (!all.is_object()) return {all.is_discarded() ? one_line(body) : "", "", ""};
  const auto error = all.find("error");
  if (error == all.end()) return {one_line(text_of(all, "message")), "", ""};
  if (error->is_string()) return {one_line(error->get<std::string>()), "", ""};
  if (!error->is_object()) return {};
  return {one_line(text_of(*error, "message")), text_of(*error, "type"), text_of(*error, "code")};
}

std::string quoted(const std::string& message) {
  return message.empty() ? std::string("without a word") : fmt::format("'{}'", message);
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool spent(const Said& said) {
  return exhausted().count(said.type) || exhausted().count(said.code);
}

}  // namespace

std::optional<double> asked_wait(const HttpHead& head, double now) {
  const auto number = [](const std::string& text) -> std::optional<double> {
    char* end = nullptr;
    const double value = strtod(text.c_str(), &end);
    if (text.empty() || *end || !std::isfinite(value) || value < 0) return std::nullopt;
    return value;
  };
  if (const auto ms = number(head.header("retry-after-ms"))) return *ms / 1000;
  const std::string after = head.header("retry-after");
  if (const auto seconds = number(after)) return seconds;
  tm date{};
  const char* end = strptime(after.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (after.empty() || !end || *end) return std::nullopt;
  return std::max(0.0, static_cast<double>(timegm(&date)) - now);
}

double backoff(int n, double first, double random) {
  const double wait = std::min(first * std::pow(2.0, n - 1), std::max(first, 8.0));
  return wait * (1 - random / 4);
}

Refusal refusal_of(const HttpHead& head, const std::string& body, const std::string& origin,
                   const KeyPlace& key) {
  const Said said = said_by(body);
  const int status = head.status;
  // What was said with a refused key often repeats a part of it.
  if (status == 401 || status == 403)
    return {
        Kind::refused_key,
        !key.sent
            ? fmt::format("{} answers {}, and no key was sent: set {}", origin, status, key.from)
            : fmt::format("{} answers {} to the key from {}: {}", origin, status, key.from,
                          status == 401 ? "it is wrong or revoked, set another"
                                        : "it may not use this model or endpoint"),
        false,
        {}};
  if (status == 402 || spent(said))
    return {Kind::budget,
            fmt::format("{} answers {}: the account's credit or spending limit is used up ({}); "
                        "mend that with the vendor, or name another endpoint",
                        origin, status, quoted(said.message)),
            false,
            {}};
  if (status >= 300 && status < 400)
    return {Kind::bad_request,
            fmt::format("{} answers {} and points to '{}': redirects are not followed, give the "
                        "right address as --endpoint",
                        origin, status, one_line(head.header("location"))),
            false,
            {}};
  Refusal refusal;
  refusal.wait = asked_wait(head, now_seconds());
  refusal.repeat = status == 408 || status == 409 || status == 429 || status >= 500;
  const std::string should = head.header("x-should-retry");
  if (should == "true" || should == "false") refusal.repeat = should == "true";
  if (refusal.wait && *refusal.wait > longest_wait) refusal.repeat = false;
  if (status == 429) {
    refusal.kind = Kind::rate_limited;
    refusal.line =
        fmt::format("{} answers 429, too many requests ({}): {}", origin, quoted(said.message),
                    refusal.wait ? fmt::format("try again in {:.0f} s", *refusal.wait)
                                 : std::string("try again later, or ask for fewer at once"));
  } else if (status >= 500 || status == 408 || status == 409) {
    refusal.kind = status == 408 ? Kind::timeout : Kind::server;
    refusal.line =
        fmt::format("{} answers {} ({}): try again later", origin, status, quoted(said.message));
  } else {
    refusal.kind = Kind::bad_request;
    refusal.line = fmt::format("{} answers {} ({}): {}", origin, status, quoted(said.message),
                               status == 404   ? "look at --model, --endpoint and --api"
                               : status == 413 ? "the request is too long for this endpoint"
                                               : "look at --model, --api and --body");
  }
  return refusal;
}

Refusal refusal_in_stream(const std::string& type, const std::string& message,
                          const std::string& origin) {
  const Said said{one_line(message), type, ""};
  if (spent(said))
    return {Kind::budget,
            fmt::format("{} ends its answer: the account's credit or spending limit is used up "
                        "({}); mend that with the vendor, or name another endpoint",
                        origin, quoted(said.message)),
            false,
            {}};
  const bool rate = type.starts_with("rate_limit") || type == "slow_down";
  return {rate ? Kind::rate_limited : Kind::server,
          fmt::format("{} ends its answer with an error of type '{}' ({}): try again later", origin,
                      one_line(type), quoted(said.message)),
          passing().count(type) > 0,
          {}};
}

Refusal refusal_of(const HttpEnd& end, const std::string& origin) {
  switch (end.kind) {
    case HttpEnd::Kind::untrusted:
      return {
          Kind::unreachable,
          fmt::format("{} is not trusted ({}): an authority of your own goes into the file that "
                      "SSL_CERT_FILE names",
                      origin, end.why),
          false,
          {}};
    case HttpEnd::Kind::timeout:
      return {Kind::timeout,
              fmt::format("{}: {}; raise the limit, or look whether the endpoint works", origin,
                          end.why),
              true,
              {}};
    case HttpEnd::Kind::overran:
      return {
          Kind::timeout, fmt::format("{}: {}; raise whole_seconds", origin, end.why), false, {}};
    case HttpEnd::Kind::unreachable:
      return {
          Kind::unreachable,
          fmt::format("{} cannot be reached ({}): look at --endpoint, and whether a server runs "
                      "there",
                      origin, end.why),
          true,
          {}};
    case HttpEnd::Kind::broken:
    case HttpEnd::Kind::whole:
    case HttpEnd::Kind::stopped:
      break;
  }
  return {Kind::malformed,
          fmt::format("{}: {}; try again, and look at what the server logs", origin, end.why),
          true,
          {}};
}

}  // namespace kw::models
