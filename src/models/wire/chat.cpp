// OpenAI's Chat Completions, which local servers (vLLM, llama.cpp, Ollama, SGLang) speak as well.
//
//   data: {"model": "m", "choices": [{"delta": {"content": "Hel"}, "finish_reason": null}]}
//   data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
//   data: [DONE]
#include "models/wire/wire.h"

namespace kw::models {
namespace {

using Json = nlohmann::json;

class ChatWire : public Wire {
 public:
  explicit ChatWire(bool vendor_itself) : vendor_itself_(vendor_itself) {}

  const char* default_endpoint() const override { return "https://api.openai.com/v1"; }
  const char* default_key_env() const override { return "OPENAI_API_KEY"; }
  std::string path() const override { return "/chat/completions"; }

  Headers headers(const Secret& key) const override {
    if (key.empty()) return {};
    return {{"Authorization", "Bearer " + key.reveal()}};
  }

  Json body(const Request& r, const std::string& model) const override {
    Json messages = Json::array();
    if (!r.system.empty()) messages.push_back({{"role", "system"}, {"content", r.system}});
    messages.push_back({{"role", "user"}, {"content", r.user}});
    Json body = {{"model", model},
                 {"messages", messages},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}}};
    // The vendor's newer models refuse the old name, and some local servers know only that one.
    body[vendor_itself_ ? "max_completion_tokens" : "max_tokens"] = r.most_tokens;
    if (!r.schema.is_null())
      body["response_format"] = {
          {"type", "json_schema"},
          {"json_schema", {{"name", "answer"}, {"strict", true}, {"schema", r.schema}}}};
    return body;
  }

  void event(const SseEvent& event, Reply& reply) const override {
    if (event.data == "[DONE]") {
      reply.ended = true;
      return;
    }
    const Json data = object_of(event.data);
    if (const Json* error = find_member(data, "error")) {
      if (!error->is_object()) throw WireError("error", error->dump());
      const std::string code = error->contains("code") && (*error)["code"].is_string()
                                   ? (*error)["code"].get<std::string>()
                                   : text_or_empty(*error, "type");
      throw WireError(code, text_or_empty(*error, "message"));
    }
    take(data, "delta", reply);
  }

  void whole(const Json& answer, Reply& reply) const override {
    if (array_in(answer, "choices").empty())
      throw WireFault("no 'choices' in the answer: is this endpoint an API of chat?");
    take(answer, "message", reply);
    reply.ended = true;
  }

 private:
  static void take(const Json& data, const char* part, Reply& reply) {
    if (const std::string who = text_or_empty(data, "model"); !who.empty()) reply.who = who;
    for (const Json& choice : array_in(data, "choices")) {
      if (const Json* message = find_member(choice, part)) {
        reply.text += text_or_empty(*message, "content");
        if (!text_or_empty(*message, "refusal").empty()) reply.declined = true;
      }
      const std::string why = text_or_empty(choice, "finish_reason");
      if (why.empty()) continue;
      reply.stopped = why;
      reply.cut = why == "length";
      reply.declined = reply.declined || why == "content_filter";
    }
    if (const Json* usage = find_member(data, "usage")) {
      reply.tokens_in = count_in(*usage, "prompt_tokens");
      reply.tokens_out = count_in(*usage, "completion_tokens");
    }
  }

  bool vendor_itself_;
};

}  // namespace

std::unique_ptr<Wire> make_chat_wire(bool vendor_itself) {
  return std::make_unique<ChatWire>(vendor_itself);
}

}  // namespace kw::models
