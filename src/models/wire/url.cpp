#include "models/wire/url.h"

#include <fmt/format.h>

#include <regex>

#include "models/providers/provider.h"

namespace kw::models {
namespace {

[[noreturn]] void refuse_address(const std::string& line) {
  throw ProviderError(ProviderError::Kind::bad_request, line);
}

}  // namespace

std::string Url::origin() const {
  const bool six = host.find(':') != std::string::npos;
  std::string out = fmt::format("{}://{}", tls ? "https" : "http", six ? "[" + host + "]" : host);
  if (port != (tls ? 443 : 80)) out += fmt::format(":{}", port);
  return out;
}

bool Url::loopback() const {
  static const std::regex four("127\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}");
  return host == "localhost" || host == "::1" || std::regex_match(host, four);
}

Url parse_url(const std::string& text) {
  static const std::regex form(
      "(https?)://(\\[([0-9a-fA-F:]+)\\]|[A-Za-z0-9._-]+)(:(\\d{1,5}))?(/[^\\s?#@]*)?");
  std::smatch m;
  if (text.find('@') != std::string::npos)
    refuse_address(
        "the endpoint has an '@' in it: names and passwords do not belong into an address, "
        "give the key by --key-env or --key-command");
  if (!std::regex_match(text, m, form))
    refuse_address(
        fmt::format("the endpoint '{}' is not an address of the form http(s)://HOST[:PORT][/PATH]",
                    text.substr(0, 200)));
  Url url;
  url.tls = m[1] == "https";
  url.host = m[3].matched ? m[3].str() : m[2].str();
  url.port = m[5].matched ? std::stoi(m[5]) : url.tls ? 443 : 80;
  if (url.port < 1 || url.port > 65535)
    refuse_address(fmt::format("the endpoint's port is {}: it must be 1 to 65535", url.port));
  url.path = m[6].str();
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  return url;
}

}  // namespace kw::models
