// The address of an endpoint.
#pragma once
#include <string>

namespace kw::models {

struct Url {
  bool tls = true;
  std::string host;  // an IPv6 address without its brackets
  int port = 443;
  std::string path;  // "/v1", without a slash at its end; may be empty

  // "https://host:port", without the port where it is the scheme's own.
  std::string origin() const;
  // localhost, 127.0.0.0/8, ::1: what never leaves the machine.
  bool loopback() const;
};

// Throws ProviderError (bad_request) for anything but http(s)://HOST[:PORT][/PATH]; names and
// passwords in an address are refused, and are not repeated in the error.
Url parse_url(const std::string& text);

}  // namespace kw::models
