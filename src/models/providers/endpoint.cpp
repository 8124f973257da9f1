// One request to an endpoint: sent, read as it comes, repeated where that may help, and charged.
//
// What came from the endpoint is redacted before anybody sees it. A stream that stops before the
// protocol's last word is no answer; a request whose answer broke off is charged what has come.
#include "models/providers/endpoint.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <thread>

#include "models/providers/retry.h"
#include "models/secret.h"
#include "models/wire/http.h"
#include "models/wire/sse.h"
#include "models/wire/utf8.h"
#include "models/wire/wire.h"
#include "support/entropy.h"

namespace kw::models {
namespace {

using Json = nlohmann::json;
using Kind = ProviderError::Kind;

constexpr size_t kMostErrorBytes = 64 << 10;

// What one request came to: an answer, or why there is none.
struct Try {
  Reply reply;
  std::optional<Refusal> refusal;
  bool too_long = false;  // cut at most_bytes
  bool accepted = false;  // status 200: whatever followed costs
};

double random_number() {
  thread_local std::mt19937_64 numbers{entropy()};
  return std::uniform_real_distribution<double>(0, 1)(numbers);
}

class Endpoint : public Provider {
 public:
  Endpoint(const Settings& s, std::shared_ptr<Budget> budget, std::unique_ptr<Wire> wire, Url url,
           Secret key, KeyPlace place)
      : settings_(s),
        budget_(std::move(budget)),
        wire_(std::move(wire)),
        url_(std::move(url)),
        key_(std::move(key)),
        place_(std::move(place)) {
    if (url_.path.empty()) url_.path = "/v1";
    url_.path += wire_->path();
  }

  Answer ask(const Request& asked, const std::function<void(size_t)>& heard) override {
    Request request = asked;
    request.system = redacted(request.system);
    request.user = redacted(request.user);
    const std::string body = body_of(request);
    for (int repeated = 0;; ++repeated) {
      Budget::Hold hold = budget_->hold(request);
      Try t = attempt(body, heard);
      const Usage used = used_by(t, request);
      const double dollars = t.accepted ? hold.charge(used) : 0;
      if (!t.refusal) return answer_of(t, dollars);
      if (!t.refusal->repeat || repeated >= settings_.retries)
        throw ProviderError(t.refusal->kind,
                            redacted(t.refusal->line) +
                                (repeated ? fmt::format(" (asked {} times)", repeated + 1) : ""));
      const double wait =
          t.refusal->wait.value_or(backoff(repeated + 1, settings_.retry_wait, random_number()));
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    }
  }

 private:
  std::string body_of(const Request& request) const {
    if (const auto at = not_utf8(request.system + request.user))
      throw ProviderError(Kind::bad_request,
                          fmt::format("the request is not UTF-8 at byte {} of system and user: "
                                      "convert it",
                                      *at));
    Json body = wire_->body(request, settings_.model);
    body.merge_patch(settings_.body);
    return body.dump();
  }

  Try attempt(const std::string& body, const std::function<void(size_t)>& heard) const {
    HttpRequest http{url_, wire_->headers(key_), body};
    http.headers.push_back({"Content-Type", "application/json"});
    http.headers.push_back({"Accept", "text/event-stream, application/json"});
    http.headers.push_back({"User-Agent", "kernelwright"});
    const HttpLimits limits{settings_.connect_seconds, settings_.first_byte_seconds,
                            settings_.idle_seconds, settings_.whole_seconds};
    Try t;
    HttpHead head;
    std::string collected;  // a body that is no stream
    bool streamed = false;
    long bytes = 0;
    SseParser events([&](const SseEvent& e) {
      if (!t.reply.ended) wire_->event(e, t.reply);
    });
    try {
      const HttpEnd end = http_post(
          http, limits,
          [&](const HttpHead& h) {
            head = h;
            t.accepted = h.status == 200;
            streamed = t.accepted && h.header("content-type").starts_with("text/event-stream");
          },
          [&](std::string_view piece) {
            bytes += static_cast<long>(piece.size());
            if (streamed) {
              const size_t before = t.reply.text.size();
              events.feed(piece);
              if (heard && t.reply.text.size() > before) heard(t.reply.text.size());
            } else {
              collected += piece;
              if (!t.accepted && collected.size() > kMostErrorBytes) return false;
            }
            t.too_long = bytes > settings_.most_bytes;
            return !t.too_long && !t.reply.ended;
          });
      judge(t, head, collected, streamed, end);
    } catch (const WireFault& fault) {
      t.refusal = {Kind::malformed,
                   fmt::format("{} answers what --api {} does not know ({}): look at --api and "
                               "--endpoint",
                               url_.origin(), settings_.api, fault.what()),
                   false,
                   {}};
    } catch (const WireError& error) {
      t.refusal = refusal_in_stream(error.type, error.what(), url_.origin());
    }
    return t;
  }

  void judge(Try& t, const HttpHead& head, const std::string& collected, bool streamed,
             const HttpEnd& end) const {
    if (head.status != 0 && !t.accepted) {
      t.refusal = refusal_of(head, collected, url_.origin(), place_);
      return;
    }
    if (end.kind != HttpEnd::Kind::whole && end.kind != HttpEnd::Kind::stopped) {
      t.refusal = refusal_of(end, url_.origin());
      return;
    }
    if (!streamed && !t.too_long) {
      const std::string type = head.header("content-type");
      if (type.find("json") == std::string::npos)
        throw WireFault(
            fmt::format("its content type is '{}', and an answer is text/event-stream "
                        "or application/json",
                        type.substr(0, 80)));
      wire_->whole(object_of(collected), t.reply);
    }
    if (t.too_long) return;
    if (!t.reply.ended)
      t.refusal = {Kind::malformed,
                   fmt::format("the stream of {} ended before its last event, after {} bytes of "
                               "text: try again, and look at what the server logs",
                               url_.origin(), t.reply.text.size()),
                   true,
                   {}};
    else if (t.reply.declined)
      t.refusal = {Kind::malformed,
                   fmt::format("the model {} declines to answer ({}): change the question or the "
                               "model",
                               named(t.reply), t.reply.stopped),
                   false,
                   {}};
    else if (t.reply.text.empty())
      t.refusal = {Kind::malformed,
                   t.reply.cut
                       ? fmt::format("the model {} used all tokens of its answer before its "
                                     "first word: allow more",
                                     named(t.reply))
                       : fmt::format("the model {} answers nothing ({}): ask again, or "
                                     "another model",
                                     named(t.reply), t.reply.stopped),
                   false,
                   {}};
  }

  std::string named(const Reply& reply) const {
    return reply.who.empty() ? fmt::format("unnamed (asked for {})", settings_.model) : reply.who;
  }

  // As the endpoint counts. Where it does not, or its answer broke off: as guessed.
  static Usage used_by(const Try& t, const Request& request) {
    Usage used{t.reply.tokens_in, t.reply.tokens_out};
    const bool counted = !t.refusal && !t.too_long;
    if (used.tokens_in == 0) used.tokens_in = guess(request).tokens_in;
    if (!counted || used.tokens_out == 0)
      used.tokens_out = std::max(used.tokens_out, guess_tokens(t.reply.text.size()));
    return used;
  }

  Answer answer_of(const Try& t, double dollars) const {
    return {redacted(t.reply.text), redacted(named(t.reply)), !t.reply.cut && !t.too_long,
            t.reply.tokens_in,      t.reply.tokens_out,       dollars};
  }

  Settings settings_;
  std::shared_ptr<Budget> budget_;
  std::unique_ptr<Wire> wire_;
  Url url_;
  Secret key_;
  KeyPlace place_;
};

}  // namespace

std::unique_ptr<Provider> make_endpoint(const Settings& s, std::shared_ptr<Budget> budget) {
  std::unique_ptr<Wire> wire = make_wire(s.api, false);
  if (!wire)
    throw ProviderError(
        Kind::bad_request,
        fmt::format("there is no API '{}': chat, responses, anthropic, folder:DIR or "
                    "replay:FILE",
                    s.api));
  if (s.model.empty())
    throw ProviderError(Kind::bad_request,
                        fmt::format("no model is named: give --model, as the endpoint calls it"));
  Url url = parse_url(s.endpoint.empty() ? wire->default_endpoint() : s.endpoint);
  const bool vendor = url.host == parse_url(wire->default_endpoint()).host;
  if (!url.tls && !url.loopback() && !s.allow_http)
    throw ProviderError(Kind::bad_request,
                        fmt::format("'{}' is another machine, and http:// lets anyone on the way "
                                    "read along: use https://, or say --allow-http",
                                    url.origin()));
  KeyPlace place{s.key_env.empty() ? wire->default_key_env() : s.key_env};
  Secret key;
  if (!s.key_command.empty()) {
    place.from = "--key-command";
    key = secret_of_command(s.key_command);
  } else if (vendor || !s.key_env.empty()) {  // the vendor's key goes nowhere else unasked
    key = secret_of_environment(place.from);
    if (key.empty())
      throw ProviderError(Kind::refused_key,
                          fmt::format("{} wants a key, and {} is not set: set it, or name another "
                                      "variable by --key-env, or use --key-command",
                                      url.origin(), place.from));
  } else {
    place.from = "a variable to it and name that by --key-env";
  }
  place.sent = !key.empty();
  return std::make_unique<Endpoint>(s, std::move(budget), make_wire(s.api, vendor), std::move(url),
                                    std::move(key), std::move(place));
}

}  // namespace kw::models
