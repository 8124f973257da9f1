// OpenAI's Responses.
//
//   event: response.output_text.delta
//   data: {"type": "response.output_text.delta", "delta": "Hel"}
//   event: response.completed
//   data: {"type": "response.completed", "response": {"model": "m", "usage": {...}}}
//
// Nothing is stored at the vendor's (`store`: false), and no earlier response is referred to.
#include "models/wire/wire.h"

namespace kw::models {
namespace {

using Json = nlohmann::json;

class ResponsesWire : public Wire {
 public:
  const char* default_endpoint() const override { return "https://api.openai.com/v1"; }
  const char* default_key_env() const override { return "OPENAI_API_KEY"; }
  std::string path() const override { return "/responses"; }

  Headers headers(const Secret& key) const override {
    if (key.empty()) return {};
    return {{"Authorization", "Bearer " + key.reveal()}};
  }

  Json body(const Request& r, const std::string& model) const override {
    Json body = {{"model", model},
                 {"input", r.user},
                 {"stream", true},
                 {"max_output_tokens", r.most_tokens},
                 {"store", false}};
    if (!r.system.empty()) body["instructions"] = r.system;
    if (!r.schema.is_null())
      body["text"] = {
          {"format",
           {{"type", "json_schema"}, {"name", "answer"}, {"strict", true}, {"schema", r.schema}}}};
    return body;
  }

  void event(const SseEvent& event, Reply& reply) const override {
    if (event.data == "[DONE]") return;  // some servers add it
    const Json data = object_of(event.data);
    const std::string type = text_or_empty(data, "type");
    if (type == "response.output_text.delta") reply.text += text_or_empty(data, "delta");
    if (type == "response.refusal.delta") reply.declined = true;
    if (type == "error") {
      const Json* inside = find_member(data, "error");  // the error itself, or one level down
      fail(inside ? *inside : data);
    }
    if (type != "response.completed" && type != "response.incomplete" && type != "response.failed")
      return;
    const Json* response = find_member(data, "response");
    if (!response) throw WireFault("an event '" + type + "' without its 'response'");
    end(*response, reply);
  }

  void whole(const Json& answer, Reply& reply) const override {
    if (!find_member(answer, "output"))
      throw WireFault("no 'output' in the answer: is this endpoint an API of responses?");
    for (const Json& item : array_in(answer, "output"))
      for (const Json& part : array_in(item, "content")) {
        const std::string type = text_or_empty(part, "type");
        if (type == "output_text") reply.text += text_or_empty(part, "text");
        if (type == "refusal") reply.declined = true;
      }
    end(answer, reply);
  }

 private:
  [[noreturn]] static void fail(const Json& error) {
    const std::string code = text_or_empty(error, "code");
    throw WireError(code.empty() ? text_or_empty(error, "type") : code,
                    text_or_empty(error, "message"));
  }

  static void end(const Json& response, Reply& reply) {
    reply.who = text_or_empty(response, "model");
    reply.stopped = text_or_empty(response, "status");
    if (const Json* error = find_member(response, "error")) fail(*error);
    if (reply.stopped == "failed") throw WireError("failed", "");
    if (const Json* details = find_member(response, "incomplete_details")) {
      reply.stopped = text_or_empty(*details, "reason");
      reply.declined = reply.declined || reply.stopped == "content_filter";
      reply.cut = !reply.declined;
    }
    if (const Json* usage = find_member(response, "usage")) {
      reply.tokens_in = count_in(*usage, "input_tokens");
      reply.tokens_out = count_in(*usage, "output_tokens");
    }
    reply.ended = true;
  }
};

}  // namespace

std::unique_ptr<Wire> make_responses_wire() { return std::make_unique<ResponsesWire>(); }

}  // namespace kw::models
