#include "transfer/tile_database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kw::transfer {
namespace {

using OrderedJson = nlohmann::ordered_json;  // constants keep the order in which they are written

constexpr const char* kKeys[] = {"any", "alike", "by_row", "window", "sparse"};

// Reads one database. After a fault it goes on with defaults, so that one reading reports all.
class Reader {
 public:
  Reader(const SourcePtr& source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  std::optional<TileDatabase> read() {
    const size_t before = diagnostics_.all().size();
    TileDatabase database;
    if (const std::optional<OrderedJson> json = parse()) file(*json, database);
    if (diagnostics_.all().size() != before) return std::nullopt;
    return database;
  }

 private:
  std::optional<OrderedJson> parse() {
    try {
      return OrderedJson::parse(source_->text);
    } catch (const OrderedJson::parse_error& e) {
      const size_t size = source_->text.size();
      const uint32_t at = static_cast<uint32_t>(std::min(e.byte > 0 ? e.byte - 1 : 0, size));
      const std::string what = e.what();  // "[json.exception.parse_error.101] parse error at ..."
      const size_t reason = what.rfind(": ");
      diagnostics_.error(
          "tiles.syntax", {source_, at, at},
          "not JSON: " + (reason == std::string::npos ? what : what.substr(reason + 2)));
      return std::nullopt;
    } catch (const OrderedJson::out_of_range&) {
      diagnostics_.error("tiles.syntax", {source_, 0, 0},
                         "not JSON: a number that no double holds");
      return std::nullopt;
    }
  }

  void fault(const std::string& path, const std::string& message) {
    diagnostics_
        .error("tiles.field", {},
               fmt::format("{}: {}{}{}", source_->name, path, path.empty() ? "" : ": ", message))
        .hint = "docs/tuning.md has the form of a tile database";
  }

  void file(const OrderedJson& json, TileDatabase& database) {
    if (!json.is_object() || !json.contains("rows") || !json["rows"].is_array())
      return fault("", "is not an object with a list \"rows\"");
    only(json, "", {"about", "rows"});
    if (json.contains("about")) database.about = text(json, "", "about");
    for (size_t n = 0; n < json["rows"].size(); ++n)
      database.rows.push_back(row(json["rows"][n], fmt::format("rows[{}]", n)));
  }

  Tiles row(const OrderedJson& json, const std::string& path) {
    Tiles t;
    t.place = fmt::format("{}: {}", source_->name, path);
    if (!json.is_object()) {
      fault(path, "is not an object");
      return t;
    }
    only(json, path + ".", {"targets", "D", "V", "keys", "constants", "why"});
    t.targets = targets(json, path + ".");
    if (json.contains("D") || json.contains("V") || json.contains("keys")) {
      t.dim = dimension(json, path + ".", "D");
      t.value_dim = dimension(json, path + ".", "V");
      t.keys = keys(json, path + ".");
    }
    t.constants = constants(json, path + ".");
    t.why = text(json, path + ".", "why");
    return t;
  }

  void only(const OrderedJson& json, const std::string& path,
            const std::vector<std::string>& known) {
    for (const auto& [field, value] : json.items())
      if (std::find(known.begin(), known.end(), field) == known.end())
        fault(path + field,
              fmt::format("is not a field here; there are {}", fmt::join(known, ", ")));
  }

  const OrderedJson* get(const OrderedJson& json, const std::string& path, const char* field) {
    const auto found = json.find(field);
    if (found != json.end()) return &*found;
    fault(path + field, "is missing");
    return nullptr;
  }

  std::string text(const OrderedJson& json, const std::string& path, const char* field) {
    const OrderedJson* value = get(json, path, field);
    if (value && value->is_string()) return value->get<std::string>();
    if (value) fault(path + field, fmt::format("is {}, not a text", value->dump()));
    return {};
  }

  std::vector<std::string> targets(const OrderedJson& json, const std::string& path) {
    const OrderedJson* list = get(json, path, "targets");
    std::vector<std::string> out;
    if (list && list->is_array())
      for (const OrderedJson& target : *list)
        if (target.is_string()) out.push_back(target.get<std::string>());
    if (list && (out.empty() || out.size() != list->size()))
      fault(path + "targets", fmt::format("is {}, not a list of targets (sm_90a)", list->dump()));
    return out;
  }

  int64_t dimension(const OrderedJson& json, const std::string& path, const char* field) {
    const OrderedJson* value = get(json, path, field);
    if (!value) return 0;
    if (value->is_number_integer() && value->get<int64_t>() > 0) return value->get<int64_t>();
    fault(path + field, fmt::format("is {}, not a number of columns", value->dump()));
    return 0;
  }

  Keys keys(const OrderedJson& json, const std::string& path) {
    const std::string word = text(json, path, "keys");
    if (const std::optional<Keys> keys = keys_named(word)) return *keys;
    if (!word.empty())
      fault(path + "keys", fmt::format("is '{}', not one of {}", word, fmt::join(kKeys, ", ")));
    return Keys::any;
  }

  std::vector<Constant> constants(const OrderedJson& json, const std::string& path) {
    std::vector<Constant> out;
    const OrderedJson* list = get(json, path, "constants");
    if (!list) return out;
    if (!list->is_object()) {
      fault(path + "constants", "is not an object of names and values");
      return out;
    }
    for (const auto& [name, value] : list->items())
      if (value.is_boolean())
        out.push_back({name, value.get<bool>()});
      else if (value.is_number_integer())
        out.push_back({name, value.get<int64_t>()});
      else
        fault(path + "constants." + name,
              fmt::format("is {}; a constant is a whole number, true or false", value.dump()));
    return out;
  }

  const SourcePtr& source_;
  Diagnostics& diagnostics_;
};

}  // namespace

const char* name(Keys keys) { return kKeys[static_cast<int>(keys)]; }

std::optional<Keys> keys_named(const std::string& name) {
  const auto found = std::find(std::begin(kKeys), std::end(kKeys), name);
  if (found == std::end(kKeys)) return std::nullopt;
  return static_cast<Keys>(found - std::begin(kKeys));
}

std::string text_of(const ConstantValue& value) {
  if (const bool* toggle = std::get_if<bool>(&value)) return *toggle ? "true" : "false";
  return std::to_string(std::get<int64_t>(value));
}

std::string text_of(const std::vector<Constant>& constants) {
  std::string out;
  for (const Constant& c : constants)
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", c.name, text_of(c.value));
  return out;
}

bool Tiles::is_for(const std::string& target) const {
  return std::find(targets.begin(), targets.end(), target) != targets.end();
}

std::optional<TileDatabase> read_tiles(const SourcePtr& source, Diagnostics& diagnostics) {
  return Reader(source, diagnostics).read();
}

std::string print(const TileDatabase& database) {
  const auto quoted = [](const std::string& text) { return OrderedJson(text).dump(); };
  std::string rows;
  for (const Tiles& t : database.rows) {
    std::vector<std::string> constants;
    for (const Constant& c : t.constants)
      constants.push_back(quoted(c.name) + ": " + text_of(c.value));
    const std::string of = t.of_product() ? ""
                                          : fmt::format(" \"D\": {}, \"V\": {}, \"keys\": \"{}\",",
                                                        t.dim, t.value_dim, name(t.keys));
    rows +=
        fmt::format("{}\n  {{\"targets\": [\"{}\"],{}\n   \"constants\": {{{}}},\n   \"why\": {}}}",
                    rows.empty() ? "" : ",", fmt::join(t.targets, "\", \""), of,
                    fmt::join(constants, ", "), quoted(t.why));
  }
  const std::string about =
      database.about.empty() ? "" : fmt::format(" \"about\": {},\n", quoted(database.about));
  return "{\n" + about + " \"rows\": [" + rows + (rows.empty() ? "]\n}\n" : "\n ]\n}\n");
}

}  // namespace kw::transfer
