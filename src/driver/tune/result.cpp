#include "driver/tune/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/files.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using OrderedJson = nlohmann::ordered_json;

const std::vector<transfer::Constant>& constants_of(const TuneFacts& facts,
                                                    const std::string& name) {
  for (size_t n = 0; n < facts.candidates.size(); ++n)
    if (facts.candidates[n].name == name) return facts.constants[n];
  static const std::vector<transfer::Constant> none;
  return none;
}

bool same_case(const transfer::Tiles& a, const transfer::Tiles& b) {
  return a.targets == b.targets && a.dim == b.dim && a.value_dim == b.value_dim && a.keys == b.keys;
}

}  // namespace

bool write_tune_facts(const fs::path& folder, const TuneFacts& facts) {
  OrderedJson candidates = OrderedJson::array();
  for (size_t n = 0; n < facts.candidates.size(); ++n) {
    OrderedJson constants = OrderedJson::object();
    for (const transfer::Constant& c : facts.constants[n])
      std::visit([&](auto value) { constants[c.name] = value; }, c.value);
    candidates.push_back({{"name", facts.candidates[n].name},
                          {"present", facts.candidates[n].present},
                          {"text", facts.candidates[n].text},
                          {"constants", constants}});
  }
  const OrderedJson json = {{"spec", facts.spec},      {"target", facts.target},
                            {"dtype", facts.dtype},    {"D", facts.dim},
                            {"V", facts.value_dim},    {"keys", transfer::name(facts.keys)},
                            {"candidates", candidates}};
  return write_file(folder / "tune.json", json.dump(1) + "\n");
}

std::optional<TuneFacts> read_tune_facts(const fs::path& folder, Diagnostics& diagnostics) {
  TuneFacts facts;
  const auto candidates = runtime::read_tune_candidates(folder.string(), diagnostics);
  if (!candidates) return std::nullopt;
  facts.candidates = *candidates;
  const SourcePtr source = read_source((folder / "tune.json").string());
  try {
    const OrderedJson json = OrderedJson::parse(source->text);
    facts.spec = json.at("spec").get<std::string>();
    facts.target = json.at("target").get<std::string>();
    facts.dtype = json.at("dtype").get<std::string>();
    facts.dim = json.at("D").get<int64_t>();
    facts.value_dim = json.at("V").get<int64_t>();
    const std::string keys = json.at("keys").get<std::string>();
    const std::optional<transfer::Keys> known = transfer::keys_named(keys);
    if (!known) {
      diagnostics.error("tune.json", {source, 0, 0}, fmt::format("'{}' names no keys", keys));
      return std::nullopt;
    }
    facts.keys = *known;
    for (const OrderedJson& c : json.at("candidates")) {
      facts.constants.emplace_back();
      for (const auto& [name, value] : c.at("constants").items())
        if (value.is_boolean())
          facts.constants.back().push_back({name, value.get<bool>()});
        else
          facts.constants.back().push_back({name, value.get<int64_t>()});
    }
  } catch (const OrderedJson::exception& error) {
    diagnostics.error("tune.json", {source, 0, 0}, error.what());
    return std::nullopt;
  }
  return facts;
}

transfer::Tiles row_of(const TuneFacts& facts, const runtime::TuneTimes& times,
                       const runtime::TuneChoice& choice) {
  transfer::Tiles row;
  row.targets = {facts.target};
  row.dim = facts.dim;
  row.value_dim = facts.value_dim;
  row.keys = facts.keys;
  row.constants = constants_of(facts, choice.fastest);
  double ms = 0;
  for (const runtime::CandidateTimes& c : times.candidates)
    if (c.name == choice.fastest) ms = c.median();
  row.why = fmt::format("{:.0f} TFLOP/s, {}, {}, {} {}, tuned.", times.flop / ms / 1e9, times.gpu,
                        times.date, facts.dtype, times.shape);
  if (!choice.runner_up.empty())
    row.why += fmt::format(" {:.3f}x the next: {}.", choice.runner_up_ratio,
                           text_of(constants_of(facts, choice.runner_up)));
  if (!choice.present.empty() && choice.present != choice.runner_up)
    row.why += fmt::format(" {:.3f}x the row before it.", choice.present_ratio);
  return row;
}

void merge(transfer::TileDatabase& database, const transfer::Tiles& row) {
  std::vector<transfer::Tiles>& rows = database.rows;
  const auto old = std::find_if(rows.begin(), rows.end(),
                                [&](const transfer::Tiles& t) { return same_case(t, row); });
  if (old == rows.end())
    rows.insert(rows.begin(), row);
  else
    *old = row;
}

bool merge_into(const std::string& file, const transfer::Tiles& row, Diagnostics& diagnostics) {
  transfer::TileDatabase database;
  if (fs::exists(file)) {
    const SourcePtr source = read_source(file);
    auto read = source ? transfer::read_tiles(source, diagnostics) : std::nullopt;
    if (!read) {
      if (!source)
        diagnostics.error("tiles.read", {},
                          fmt::format("cannot read '{}': {}", file, std::strerror(errno)));
      return false;
    }
    database = std::move(*read);
  }
  merge(database, row);
  if (write_file(file, print(database))) return true;
  diagnostics.error("tune.write", {},
                    fmt::format("cannot write '{}': {}", file, std::strerror(errno)));
  return false;
}

}  // namespace kw::driver
