#include "models/wire/wire.h"

#include <fmt/format.h>

namespace kw::models {

using Json = nlohmann::json;

std::unique_ptr<Wire> make_wire(const std::string& api, bool vendor_itself) {
  if (api == "chat") return make_chat_wire(vendor_itself);
  if (api == "responses") return make_responses_wire();
  if (api == "anthropic") return make_anthropic_wire();
  return nullptr;
}

const Json* find_member(const Json& object, const char* name) {
  if (!object.is_object())
    throw WireFault(fmt::format("'{}' is looked for in {}", name, object.type_name()));
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_or_empty(const Json& object, const char* name) {
  const Json* found = find_member(object, name);
  if (!found) return {};
  if (!found->is_string())
    throw WireFault(fmt::format("'{}' is {}, and must be a string", name, found->type_name()));
  return found->get<std::string>();
}

const Json& array_in(const Json& object, const char* name) {
  static const Json none = Json::array();
  const Json* found = find_member(object, name);
  if (!found) return none;
  if (!found->is_array())
    throw WireFault(fmt::format("'{}' is {}, and must be an array", name, found->type_name()));
  return *found;
}

// Counts decide what is charged: one that cannot be is a fault, not a 0.
long count_in(const Json& object, const char* name) {
  const Json* found = find_member(object, name);
  if (!found) return 0;
  if (!found->is_number_integer() || found->get<double>() < 0 || found->get<double>() > 1e12)
    throw WireFault(fmt::format("'{}' is not a count of tokens", name));
  return found->get<long>();
}

Json object_of(const std::string& text) {
  try {
    Json all = Json::parse(text);
    if (!all.is_object())
      throw WireFault(fmt::format("{} where an object is due", all.type_name()));
    return all;
  } catch (const Json::parse_error& e) {
    const bool bytes = std::string(e.what()).find("UTF-8") != std::string::npos;
    throw WireFault(fmt::format("{} at byte {} of a part of the answer",
                                bytes ? "bytes that are not UTF-8" : "not JSON", e.byte));
  } catch (const Json::out_of_range&) {
    throw WireFault("a number that no double holds in a part of the answer");
  }
}

}  // namespace kw::models
