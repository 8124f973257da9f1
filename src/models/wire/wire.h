// How an API spells a request and an answer: one implementation a protocol, no network in it.
//
// An answer comes as a stream of events, or whole where a server does not stream. Whatever has
// another form than the protocol's ends in WireFault, whose text says what was expected.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/providers/provider.h"
#include "models/secret.h"
#include "models/wire/sse.h"

namespace kw::models {

struct WireFault : std::runtime_error {
  using runtime_error::runtime_error;
};

// An error that the endpoint reports inside of a stream.
struct WireError : std::runtime_error {
  WireError(std::string type, const std::string& message)
      : runtime_error(message), type(std::move(type)) {}
  std::string type;
};

// What has come of an answer so far.
struct Reply {
  std::string text, who;
  std::string stopped;    // why the model stopped, in the endpoint's word; empty: it has not said
  bool cut = false;       // it ran into most_tokens
  bool declined = false;  // it refused, or a filter did
  bool ended = false;     // the protocol's last word has come
  long tokens_in = 0, tokens_out = 0;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

class Wire {
 public:
  virtual ~Wire() = default;
  virtual const char* default_endpoint() const = 0;
  virtual const char* default_key_env() const = 0;
  // After the endpoint's own path.
  virtual std::string path() const = 0;
  virtual Headers headers(const Secret& key) const = 0;
  virtual nlohmann::json body(const Request& request, const std::string& model) const = 0;
  // One event of a stream; throws WireFault or WireError.
  virtual void event(const SseEvent& event, Reply& reply) const = 0;
  // An answer that came whole; throws WireFault.
  virtual void whole(const nlohmann::json& answer, Reply& reply) const = 0;
};

// Null for an API that there is not. Sources: the vendors' API references, as of August 2026.
//   chat.cpp       "chat": POST chat/completions, which every local server speaks
//   responses.cpp  "responses": POST responses
//   anthropic.cpp  "anthropic": POST messages
std::unique_ptr<Wire> make_wire(const std::string& api, bool vendor_itself);
std::unique_ptr<Wire> make_chat_wire(bool vendor_itself);
std::unique_ptr<Wire> make_responses_wire();
std::unique_ptr<Wire> make_anthropic_wire();

// For the three: a member that must be there, or may be; throws WireFault where it is of another
// type than asked for. null counts as not there.
const nlohmann::json* find_member(const nlohmann::json& object, const char* name);
std::string text_or_empty(const nlohmann::json& object, const char* name);
const nlohmann::json& array_in(const nlohmann::json& object, const char* name);
long count_in(const nlohmann::json& object, const char* name);
// The data of an event as a JSON object.
nlohmann::json object_of(const std::string& text);

}  // namespace kw::models
