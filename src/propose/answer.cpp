// The schema is data and is read by the few rules that it uses: object, array, string, integer,
// enum. A validator that knew more would accept schemas that strict endpoints refuse.
#include "propose/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/wire/utf8.h"
#include "propose/schema.h"

namespace kw::propose {
namespace {

using Json = nlohmann::json;
using schema::list, schema::number, schema::object, schema::text;

// Short enough for a sentence, on one line, in printable characters.
std::string shown(const Json& value) {
  std::string out = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return out.size() <= 60 ? out : out.substr(0, 57) + "...";
}

// Whether the value is what the schema asks for; otherwise `why` says where it is not.
bool fits(const Json& value, const Json& schema, const std::string& at, std::string& why) {
  const std::string type = schema["type"], here = at.empty() ? "the answer" : at;
  const bool right = type == "object"    ? value.is_object()
                     : type == "array"   ? value.is_array()
                     : type == "integer" ? value.is_number_integer()
                                         : value.is_string();
  if (!right) {
    why = fmt::format("{} is {}, {} {} is due", here, shown(value), type[0] == 's' ? "a" : "an",
                      type);
    return false;
  }
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
    why = fmt::format("{} is {}, one of {} is due", here, shown(value), schema["enum"].dump());
    return false;
  }
  if (type == "array")
    for (size_t n = 0; n < value.size(); ++n)
      if (!fits(value[n], schema["items"], fmt::format("{}/{}", at, n), why)) return false;
  if (type != "object") return true;
  for (const auto& [name, one] : value.items())
    if (!schema["properties"].contains(name)) {
      why = fmt::format(
          "{} has the property {}, and an answer has {} there: it can change lines of the program "
          "and nothing else",
          here, shown(name), schema["required"].dump());
      return false;
    }
  for (const Json& name : schema["required"])
    if (!value.contains(name)) {
      why = fmt::format("{} lacks the property {}", here, name.dump());
      return false;
    }
  for (const auto& [name, one] : value.items())
    if (!fits(one, schema["properties"][name], at + "/" + name, why)) return false;
  return true;
}

// What the library's parser lets pass: a property twice, of which it would take the last, and
// lists within lists within lists.
class Strict {
 public:
  std::string why;

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    constexpr int kDeepest = 8;
    if (depth > kDeepest) say("it is nested deeper than an answer is");
    if (event == Json::parse_event_t::object_start) names_.emplace_back();
    if (event == Json::parse_event_t::object_end) names_.pop_back();
    if (event == Json::parse_event_t::key && !names_.back().insert(value).second)
      say(fmt::format("the property {} stands twice in one object", shown(value)));
    return true;
  }

 private:
  void say(const std::string& what) {
    if (why.empty()) why = what;
  }
  std::vector<std::set<std::string>> names_;
};

}  // namespace

LineEdit edit_of(const Json& json) {
  LineEdit edit;
  const std::string op = json["op"];
  edit.kind = static_cast<EditKind>(std::find(std::begin(kEditNames), std::end(kEditNames), op) -
                                    std::begin(kEditNames));
  // Beyond any program: refused as such, not wrapped around.
  const auto line = [](const Json& value) {
    constexpr int64_t kFar = 1'000'000;
    if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(kFar)) return int(kFar);
    return int(std::clamp<int64_t>(value.get<int64_t>(), -kFar, kFar));
  };
  edit.first = line(json["first"]);
  edit.last = line(json["last"]);
  edit.expect = json["expect"];
  edit.text = json["text"].get<std::vector<std::string>>();
  return edit;
}

nlohmann::json answer_schema() {
  const Json op = schema::choice({std::begin(kEditNames), std::end(kEditNames)}, "what is done");
  const Json edit =
      object({{"op", op},
              {"first", number("the first line that it is about, as numbered")},
              {"last", number("the last line; the same one for an insertion")},
              {"expect", text("the first line as it stands, without its indentation")},
              {"text", list({{"type", "string"}},
                            "the new lines, each with its indentation; none for delete")}});
  return object({{"why", text("what the edits do, in a sentence")},
                 {"edits", list(edit, "edits of the numbered program; no line in two of them")}});
}

std::optional<Json> read_json(const models::Answer& answer, const Json& schema, Refusal& refusal) {
  const std::string& text = answer.text;
  const auto refuse = [&](const char* code, std::string sentence) {
    refusal = {code, std::move(sentence)};
    return std::optional<Json>();
  };
  if (!answer.complete)
    return refuse("answer.truncated",
                  fmt::format("the answer was cut off after {} bytes: give fewer or shorter edits",
                              text.size()));
  if (text.size() > kMostBytes)
    return refuse("answer.size", fmt::format("the answer has {} bytes, at most {} are read",
                                             text.size(), kMostBytes));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return refuse("answer.empty", "the answer is empty: one JSON object is due");
  if (const auto at = models::not_utf8(text))
    return refuse("answer.utf8", fmt::format("the answer is not UTF-8 from byte {} on", *at));
  Strict strict;
  Json json;
  try {
    json = Json::parse(text, std::ref(strict));
  } catch (const Json::parse_error& e) {
    return refuse("answer.json",
                  fmt::format("the answer is not JSON from byte {} on: one object is due, without "
                              "anything before or after it",
                              e.byte));
  } catch (const Json::out_of_range&) {
    return refuse("answer.json", "the answer has a number that no double holds");
  }
  if (!strict.why.empty()) return refuse("answer.json", "in the answer's JSON " + strict.why);
  std::string why;
  if (!fits(json, schema, "", why)) return refuse("answer.schema", why);
  return json;
}

std::optional<Edits> read_answer(const models::Answer& answer, Refusal& refusal) {
  static const Json schema = answer_schema();
  const std::optional<Json> json = read_json(answer, schema, refusal);
  if (!json) return std::nullopt;
  Edits out{(*json)["why"], {}};
  for (const Json& one : (*json)["edits"]) out.edits.push_back(edit_of(one));
  return out;
}

nlohmann::ordered_json to_json(const Edits& edits) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const LineEdit& e : edits.edits)
    all.push_back({{"op", kEditNames[static_cast<size_t>(e.kind)]},
                   {"first", e.first},
                   {"last", e.last},
                   {"expect", e.expect},
                   {"text", e.text}});
  return {{"why", edits.why}, {"edits", all}};
}

}  // namespace kw::propose
