#include "models/providers/provider_error.h"

namespace kw::models {
namespace {

using Kind = ProviderError::Kind;

constexpr Kind kKinds[] = {Kind::unreachable, Kind::refused_key, Kind::rate_limited,
                           Kind::bad_request, Kind::server,      Kind::timeout,
                           Kind::malformed,   Kind::budget};

}  // namespace

const char* name(Kind kind) {
  switch (kind) {
    case Kind::unreachable:
      return "unreachable";
    case Kind::refused_key:
      return "refused_key";
    case Kind::rate_limited:
      return "rate_limited";
    case Kind::bad_request:
      return "bad_request";
    case Kind::server:
      return "server";
    case Kind::timeout:
      return "timeout";
    case Kind::malformed:
      return "malformed";
    case Kind::budget:
      return "budget";
  }
  return "";
}

std::optional<Kind> kind_named(const std::string& text) {
  for (const Kind kind : kKinds)
    if (text == name(kind)) return kind;
  return std::nullopt;
}

Exit exit_of(Kind kind) {
  return kind == Kind::bad_request || kind == Kind::refused_key ? Exit::bad_input
                                                                : Exit::inconclusive;
}

}  // namespace kw::models
