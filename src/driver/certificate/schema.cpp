#include "driver/certificate/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

namespace kw::driver {
namespace {

using Json = nlohmann::json;
using Fault = std::optional<std::string>;

const std::set<std::string> kKeywords = {
    "type",     "const", "enum",     "pattern", "minimum",    "maximum",
    "minItems", "items", "required", "oneOf",   "properties", "additionalProperties",
    "$ref",     "$defs", "$schema",  "$id",     "title",      "description"};

// A value in a message: short.
std::string clipped(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  return type == "null" && value.is_null();
}

class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  Fault check(const Json& value, const Json& schema, const std::string& at) const {
    for (const auto& [keyword, unused] : schema.items())
      if (!kKeywords.count(keyword))
        return fmt::format("schema.keyword: the schema says '{}', which is not supported", keyword);
    if (schema.contains("$ref")) {
      const std::string name = schema["$ref"].get<std::string>().substr(8);  // after "#/$defs/"
      return check(value, root_.at("$defs").at(name), at);
    }
    if (Fault fault = check_value(value, schema, at)) return fault;
    if (Fault fault = check_alternatives(value, schema, at)) return fault;
    if (value.is_array()) return check_items(value, schema, at);
    if (value.is_object()) return check_members(value, schema, at);
    return std::nullopt;
  }

 private:
  static std::string place(const std::string& at) { return at.empty() ? "/" : at; }

  Fault check_value(const Json& value, const Json& schema, const std::string& at) const {
    if (schema.contains("type")) {
      const std::string type = schema["type"];
      if (!is_of_type(value, type))
        return fmt::format("{}: is {}, and must be of type {}", place(at), clipped(value), type);
    }
    if (schema.contains("const") && value != schema["const"])
      return fmt::format("{}: is {}, and must be {}", place(at), clipped(value),
                         clipped(schema["const"]));
    if (schema.contains("enum")) {
      const Json& all = schema["enum"];
      if (std::find(all.begin(), all.end(), value) == all.end())
        return fmt::format("{}: is {}, and must be one of {}", place(at), clipped(value),
                           clipped(schema["enum"]));
    }
    if (schema.contains("pattern") && value.is_string()) {
      const std::string text = value;  // std::regex recurses: long texts fit no pattern of ours
      if (text.size() > 200 ||
          !std::regex_search(text, std::regex(schema["pattern"].get<std::string>())))
        return fmt::format("{}: is {}, and must match {}", place(at), clipped(value),
                           schema["pattern"].get<std::string>());
    }
    if (value.is_number() && schema.contains("minimum") && value < schema["minimum"])
      return fmt::format("{}: is {}, and must be at least {}", place(at), clipped(value),
                         clipped(schema["minimum"]));
    if (value.is_number() && schema.contains("maximum") && value > schema["maximum"])
      return fmt::format("{}: is {}, and must be at most {}", place(at), clipped(value),
                         clipped(schema["maximum"]));
    return std::nullopt;
  }

  // Whether `value` is meant to have this form: its fields that tell forms apart are as they say.
  static bool is_meant(const Json& value, const Json& form) {
    if (!form.contains("properties")) return false;
    for (const auto& [name, member] : form["properties"].items())
      if (member.contains("const"))
        return value.is_object() && value.contains(name) && value[name] == member["const"];
    return false;
  }

  Fault check_alternatives(const Json& value, const Json& schema, const std::string& at) const {
    if (!schema.contains("oneOf")) return std::nullopt;
    int fitting = 0;
    Fault meant;
    for (const Json& form : schema["oneOf"]) {
      Fault fault = check(value, form, at);
      fitting += !fault;
      if (fault && is_meant(value, form)) meant = fault;
    }
    if (fitting == 1) return std::nullopt;
    return meant ? meant
                 : fmt::format("{}: is {}, which fits {} of the forms that it may have", place(at),
                               clipped(value), fitting == 0 ? "none" : "more than one");
  }

  Fault check_items(const Json& value, const Json& schema, const std::string& at) const {
    if (schema.contains("minItems") && value.size() < schema["minItems"].get<size_t>())
      return fmt::format("{}: has {} items, and must have at least {}", place(at), value.size(),
                         clipped(schema["minItems"]));
    if (!schema.contains("items")) return std::nullopt;
    for (size_t n = 0; n < value.size(); ++n)
      if (Fault fault = check(value[n], schema["items"], fmt::format("{}/{}", at, n))) return fault;
    return std::nullopt;
  }

  Fault check_members(const Json& value, const Json& schema, const std::string& at) const {
    for (const Json& name : schema.value("required", Json::array()))
      if (!value.contains(name.get<std::string>()))
        return fmt::format("{}: has no '{}'", place(at), name.get<std::string>());
    const Json known = schema.value("properties", Json::object());
    const Json others = schema.value("additionalProperties", Json(true));
    for (const auto& [name, member] : value.items()) {
      const std::string there = at + "/" + name;
      if (known.contains(name)) {
        if (Fault fault = check(member, known[name], there)) return fault;
      } else if (others.is_object()) {
        if (Fault fault = check(member, others, there)) return fault;
      } else if (!others.get<bool>()) {
        return fmt::format("{}: is not a field of this form", there);
      }
    }
    return std::nullopt;
  }

  const Json& root_;
};

}  // namespace

std::optional<std::string> mismatch(const Json& value, const Json& schema) {
  return Validator(schema).check(value, schema, "");
}

}  // namespace kw::driver
