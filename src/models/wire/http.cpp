// Boost.Beast, one asynchronous step at a time: only asynchronous operations can run out of time.
#include "models/wire/http.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace kw::models {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Clock = std::chrono::steady_clock;
using Error = boost::system::error_code;
using Parser = beast::http::response_parser<beast::http::buffer_body>;

constexpr size_t kMostHeadBytes = 64 << 10;

struct Failed {
  HttpEnd end;
};

[[noreturn]] void fail(HttpEnd::Kind kind, std::string why) { throw Failed{{kind, why}}; }

// Where systems keep the certificates of authorities: a static OpenSSL knows only Debian's place.
// Source: the list of Go's crypto/x509, root_linux.go.
void load_authorities(asio::ssl::context& tls) {
  Error ignored;
  tls.set_default_verify_paths(ignored);  // and SSL_CERT_FILE, SSL_CERT_DIR
  if (getenv("SSL_CERT_FILE")) return;
  for (const char* file :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (access(file, R_OK) == 0) {
      tls.load_verify_file(file, ignored);
      return;
    }
}

// The time of one request: each step gets its own limit, and all together theirs.
class Steps {
 public:
  explicit Steps(const HttpLimits& limits)
      : limits_(limits), stop_(Clock::now() + seconds(limits.whole_seconds)) {}

  asio::io_context& context() { return context_; }

  // Starts one operation by `start(handler)` and waits for it. `what` is what was waited for.
  template <typename Start>
  Error step(beast::tcp_stream& stream, double limit, const char* what, const Start& start) {
    const Clock::duration left = stop_ - Clock::now();
    if (left <= Clock::duration::zero()) overran();
    stream.expires_after(std::min(left, seconds(limit)));
    Error result;
    start([&](Error e, auto...) { result = e; });
    context_.restart();
    context_.run();
    if (result == beast::error::timeout) {
      if (left < seconds(limit)) overran();
      fail(HttpEnd::Kind::timeout, fmt::format("{} did not come within {} s", what, limit));
    }
    return result;
  }

 private:
  static Clock::duration seconds(double s) {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(std::min(s, 1e8)));
  }
  [[noreturn]] void overran() const {
    fail(HttpEnd::Kind::overran,
         fmt::format("the end of the answer did not come within {} s", limits_.whole_seconds));
  }

  const HttpLimits& limits_;
  Clock::time_point stop_;
  asio::io_context context_;
};

void connect(Steps& steps, beast::tcp_stream& stream, const HttpRequest& r, double limit) {
  asio::ip::tcp::resolver resolver(steps.context());
  Error failed;
  // Names are resolved by the system, within its own limits.
  const auto found = resolver.resolve(r.url.host, std::to_string(r.url.port), failed);
  if (failed) fail(HttpEnd::Kind::unreachable, fmt::format("no address: {}", failed.message()));
  failed = steps.step(stream, limit, "a connection",
                      [&](auto done) { stream.async_connect(found, done); });
  if (failed) fail(HttpEnd::Kind::unreachable, failed.message());
}

template <typename Stream>
void exchange(Steps& steps, Stream& stream, const HttpRequest& r, const HttpLimits& limits,
              const std::function<void(const HttpHead&)>& take_head,
              const std::function<bool(std::string_view)>& take_body) {
  namespace http = beast::http;
  beast::tcp_stream& lowest = beast::get_lowest_layer(stream);
  http::request<http::string_body> request(http::verb::post, r.url.path, 11);
  request.set(http::field::host, r.url.origin().substr(r.url.tls ? 8 : 7));
  request.set(http::field::connection, "close");
  for (const auto& [name, value] : r.headers) request.set(name, value);
  request.body() = r.body;
  request.prepare_payload();
  const Error sent = steps.step(lowest, limits.first_byte_seconds, "an end of sending the request",
                                [&](auto done) { http::async_write(stream, request, done); });

  beast::flat_buffer buffer;
  Parser parser;
  parser.header_limit(kMostHeadBytes);
  // Whoever takes the body counts it. (In Boost 1.74 `none` forbids a content length.)
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  // A server that refuses a request early may answer before it has read all of it.
  Error e = steps.step(lowest, limits.first_byte_seconds, "the first byte of an answer",
                       [&](auto done) { http::async_read_header(stream, buffer, parser, done); });
  if (e) fail(HttpEnd::Kind::broken, fmt::format("no answer: {}", (sent ? sent : e).message()));
  HttpHead head;
  head.status = static_cast<int>(parser.get().result_int());
  for (const auto& field : parser.get().base()) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return tolower(c); });
    head.headers[name] = std::string(field.value());
  }
  take_head(head);

  char piece[16384];
  while (!parser.is_done()) {
    parser.get().body() = {piece, sizeof piece, true};
    e = steps.step(lowest, limits.idle_seconds, "the next part of the answer",
                   [&](auto done) { http::async_read_some(stream, buffer, parser, done); });
    if (e && e != http::error::need_buffer)
      fail(HttpEnd::Kind::broken, fmt::format("the answer broke off: {}", e.message()));
    const size_t size = sizeof piece - parser.get().body().size;
    if (size > 0 && !take_body({piece, size})) fail(HttpEnd::Kind::stopped, "");
  }
}

void over_tls(Steps& steps, const HttpRequest& r, const HttpLimits& limits,
              const std::function<void(const HttpHead&)>& take_head,
              const std::function<bool(std::string_view)>& take_body) {
  asio::ssl::context tls(asio::ssl::context::tls_client);
  load_authorities(tls);
  SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
  tls.set_verify_mode(asio::ssl::verify_peer);
  tls.set_verify_callback(asio::ssl::host_name_verification(r.url.host));
  beast::ssl_stream<beast::tcp_stream> stream(steps.context(), tls);
  connect(steps, beast::get_lowest_layer(stream), r, limits.connect_seconds);
  Error is_name;
  asio::ip::make_address(r.url.host, is_name);
  if (is_name) SSL_set_tlsext_host_name(stream.native_handle(), r.url.host.c_str());
  const Error e = steps.step(
      beast::get_lowest_layer(stream), limits.connect_seconds, "the end of the TLS handshake",
      [&](auto done) { stream.async_handshake(asio::ssl::stream_base::client, done); });
  if (e) {
    const long verdict = SSL_get_verify_result(stream.native_handle());
    fail(HttpEnd::Kind::untrusted,
         verdict == X509_V_OK ? e.message() : X509_verify_cert_error_string(verdict));
  }
  exchange(steps, stream, r, limits, take_head, take_body);
}

}  // namespace

std::string HttpHead::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

HttpEnd http_post(const HttpRequest& request, const HttpLimits& limits,
                  const std::function<void(const HttpHead&)>& take_head,
                  const std::function<bool(std::string_view)>& take_body) {
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  try {
    Steps steps(limits);
    if (request.url.tls) {
      over_tls(steps, request, limits, take_head, take_body);
    } else {
      beast::tcp_stream stream(steps.context());
      connect(steps, stream, request, limits.connect_seconds);
      exchange(steps, stream, request, limits, take_head, take_body);
    }
    return {};
  } catch (const Failed& failed) {
    return failed.end;
  }
}

}  // namespace kw::models
