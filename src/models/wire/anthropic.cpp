// Anthropic's Messages.
//
//   event: message_start        {"message": {"model": "m", "usage": {"input_tokens": 9}}}
//   event: content_block_delta  {"delta": {"type": "text_delta", "text": "Hel"}}
//   event: message_delta        {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens":
//   2}} event: message_stop
#include "models/wire/wire.h"

namespace kw::models {
namespace {

using Json = nlohmann::json;

class AnthropicWire : public Wire {
 public:
  const char* default_endpoint() const override { return "https://api.anthropic.com/v1"; }
  const char* default_key_env() const override { return "ANTHROPIC_API_KEY"; }
  std::string path() const override { return "/messages"; }

  Headers headers(const Secret& key) const override {
    Headers all = {{"anthropic-version", "2023-06-01"}};
    if (!key.empty()) all.push_back({"x-api-key", key.reveal()});
    return all;
  }

  Json body(const Request& r, const std::string& model) const override {
    Json body = {{"model", model},
                 {"max_tokens", r.most_tokens},
                 {"messages", {{{"role", "user"}, {"content", r.user}}}},
                 {"stream", true}};
    // The same for every question of a run: later ones may read it from the vendor's cache.
    if (!r.system.empty())
      body["system"] = {
          {{"type", "text"}, {"text", r.system}, {"cache_control", {{"type", "ephemeral"}}}}};
    if (!r.schema.is_null())
      body["output_config"] = {{"format", {{"type", "json_schema"}, {"schema", r.schema}}}};
    return body;
  }

  void event(const SseEvent& event, Reply& reply) const override {
    const Json data = object_of(event.data);
    const std::string type = text_or_empty(data, "type");
    if (type == "error") {
      const Json* error = find_member(data, "error");
      if (!error) throw WireFault("an event 'error' without its 'error'");
      throw WireError(text_or_empty(*error, "type"), text_or_empty(*error, "message"));
    }
    if (type == "message_start") {
      const Json* message = find_member(data, "message");
      if (!message) throw WireFault("an event 'message_start' without its 'message'");
      reply.who = text_or_empty(*message, "model");
      count(*message, reply);
    }
    if (type == "content_block_delta") {
      const Json* delta = find_member(data, "delta");
      if (delta && text_or_empty(*delta, "type") == "text_delta")
        reply.text += text_or_empty(*delta, "text");
    }
    if (type == "message_delta") {
      if (const Json* delta = find_member(data, "delta")) stop(*delta, reply);
      count(data, reply);
    }
    if (type == "message_stop") reply.ended = true;
  }

  void whole(const Json& answer, Reply& reply) const override {
    if (!find_member(answer, "content"))
      throw WireFault("no 'content' in the answer: is this endpoint an API of messages?");
    for (const Json& block : array_in(answer, "content"))
      if (text_or_empty(block, "type") == "text") reply.text += text_or_empty(block, "text");
    reply.who = text_or_empty(answer, "model");
    stop(answer, reply);
    count(answer, reply);
    reply.ended = true;
  }

 private:
  static void stop(const Json& said, Reply& reply) {
    const std::string why = text_or_empty(said, "stop_reason");
    if (why.empty()) return;
    reply.stopped = why;
    reply.cut = why == "max_tokens" || why == "model_context_window_exceeded";
    reply.declined = why == "refusal";
  }

  // What was read from a cache or written to one is read as well; later counts include earlier
  // ones.
  static void count(const Json& said, Reply& reply) {
    const Json* usage = find_member(said, "usage");
    if (!usage) return;
    const long in = count_in(*usage, "input_tokens") +
                    count_in(*usage, "cache_creation_input_tokens") +
                    count_in(*usage, "cache_read_input_tokens");
    if (in > 0) reply.tokens_in = in;
    if (const long out = count_in(*usage, "output_tokens"); out > 0) reply.tokens_out = out;
  }
};

}  // namespace

std::unique_ptr<Wire> make_anthropic_wire() { return std::make_unique<AnthropicWire>(); }

}  // namespace kw::models
