// One HTTP request whose answer is taken as it comes, over TLS where the address says so.
//
// Certificates and host names are verified, always. Redirects are not followed: whoever answers
// with one gets neither the key nor the request a second time. Every wait has its limit.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/wire/url.h"

namespace kw::models {

struct HttpRequest {
  Url url;  // with the whole path
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

struct HttpLimits {
  double connect_seconds = 10;      // name, connection and TLS, each
  double first_byte_seconds = 600;  // from the request until the answer's head is there
  double idle_seconds = 120;        // between two parts of the body
  double whole_seconds = 3600;
};

struct HttpHead {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case

  // Empty where there is none.
  std::string header(const std::string& name) const;
};

struct HttpEnd {
  enum class Kind {
    whole,        // the body came to its end
    stopped,      // `take_body` wanted no more
    unreachable,  // no name, no connection
    untrusted,    // TLS failed: the certificate, most often
    timeout,      // one wait passed its limit
    overran,      // all of it passed whole_seconds
    broken,       // the connection closed early, or it was no HTTP
  };
  Kind kind = Kind::whole;
  std::string why;  // in words, for what is neither whole nor stopped
};

// POSTs and waits. `take_head` gets the status first; `take_body` each piece, and returns whether
// it wants more. What they throw is passed on.
HttpEnd http_post(const HttpRequest& request, const HttpLimits& limits,
                  const std::function<void(const HttpHead&)>& take_head,
                  const std::function<bool(std::string_view)>& take_body);

}  // namespace kw::models
