#include "runtime/tune/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kw::runtime {
namespace {

using Json = nlohmann::json;

bool plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// `read` with the text as JSON; what it throws is reported under `code`.
template <class Read>
bool with_json(const SourcePtr& source, const char* code, Diagnostics& diagnostics, Read read) {
  try {
    read(Json::parse(source->text));
    return true;
  } catch (const Json::exception& error) {
    diagnostics.error(code, {source, 0, 0}, error.what());
    return false;
  }
}

}  // namespace

double CandidateTimes::median() const {
  std::vector<double> sorted = ms;
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}
double CandidateTimes::min() const { return *std::min_element(ms.begin(), ms.end()); }
double CandidateTimes::max() const { return *std::max_element(ms.begin(), ms.end()); }

std::optional<std::vector<TuneCandidate>> read_tune_candidates(const std::string& folder,
                                                               Diagnostics& diagnostics) {
  const SourcePtr source = read_source(folder + "/tune.json");
  if (!source) {
    diagnostics
        .error("tune.json", {}, fmt::format("{}/tune.json: {}", folder, std::strerror(errno)))
        .hint = "the folder is one that `kernelwright tune` wrote";
    return std::nullopt;
  }
  std::vector<TuneCandidate> candidates;
  const bool read = with_json(source, "tune.json", diagnostics, [&](const Json& json) {
    for (const Json& c : json.at("candidates"))
      candidates.push_back({c.at("name").get<std::string>(), c.at("text").get<std::string>(),
                            c.value("present", false)});
  });
  if (!read) return std::nullopt;
  for (const TuneCandidate& c : candidates)
    if (!plain(c.name))
      diagnostics.error("tune.json", {source, 0, 0},
                        fmt::format("'{}' is not a candidate's name: letters and digits", c.name));
  if (candidates.empty()) diagnostics.error("tune.json", {source, 0, 0}, "has no candidates");
  if (diagnostics.has_errors()) return std::nullopt;
  return candidates;
}

Json to_json(const TuneTimes& times) {
  Json candidates = Json::array();
  for (const CandidateTimes& c : times.candidates)
    candidates.push_back({{"name", c.name}, {"verdict", c.verdict}, {"why", c.why}, {"ms", c.ms}});
  return {{"gpu", times.gpu},    {"driver", times.driver}, {"date", times.date},
          {"case", times.shape}, {"flop", times.flop},     {"candidates", candidates}};
}

std::optional<TuneTimes> read_tune_times(const SourcePtr& source, Diagnostics& diagnostics) {
  TuneTimes times;
  const bool read = with_json(source, "tune.times", diagnostics, [&](const Json& json) {
    times.gpu = json.at("gpu").get<std::string>();
    times.driver = json.at("driver").get<std::string>();
    times.date = json.at("date").get<std::string>();
    times.shape = json.at("case").get<std::string>();
    times.flop = json.at("flop").get<double>();
    for (const Json& c : json.at("candidates"))
      times.candidates.push_back(
          {c.at("name").get<std::string>(), c.at("verdict").get<std::string>(),
           c.at("why").get<std::string>(), c.at("ms").get<std::vector<double>>()});
  });
  if (!read) return std::nullopt;
  for (const CandidateTimes& c : times.candidates)
    for (const double ms : c.ms)
      if (!(ms > 0)) {
        diagnostics.error("tune.times", {source, 0, 0},
                          fmt::format("candidate {} took {} ms in a round", c.name, ms));
        return std::nullopt;
      }
  return times;
}

}  // namespace kw::runtime
