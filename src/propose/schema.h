// JSON Schemas of answers, in the few words that every strict endpoint and constrained decoder
// knows: objects whose properties are all required and which have no others, lists, texts,
// integers, choices.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace kw::propose::schema {

using Json = nlohmann::json;

inline Json object(Json properties) {
  Json required = Json::array();
  for (const auto& [name, one] : properties.items()) required.push_back(name);
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}
inline Json text(const char* about) { return {{"type", "string"}, {"description", about}}; }
inline Json number(const char* about) { return {{"type", "integer"}, {"description", about}}; }
inline Json list(Json items, const char* about) {
  return {{"type", "array"}, {"items", std::move(items)}, {"description", about}};
}
inline Json choice(const std::vector<std::string_view>& of, const char* about) {
  return {{"type", "string"}, {"enum", of}, {"description", about}};
}

}  // namespace kw::propose::schema
