#include "timeline/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

namespace kw::timeline {
namespace {

using Json = nlohmann::json;

// Reads one file; `fault` is the first thing wrong with it.
class Reader {
 public:
  Reader(const SourcePtr& source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  std::optional<Gpu> read(const std::string& name) {
    const Json json = Json::parse(source_->text, nullptr, false);
    if (!json.is_object()) return fault("", "is not a JSON object"), std::nullopt;
    Gpu gpu;
    gpu.name = name;
    figures(json, gpu);
    if (const Json* t = entry(json, "targets", ""))
      for (const Json& target : *t)
        if (target.is_string()) gpu.targets.push_back(target.get<std::string>());
    if (json.contains("tensor_flop") && json["tensor_flop"].is_object())
      for (const auto& [kind, value] : json["tensor_flop"].items())
        gpu.tensor_flop[kind] = number(json["tensor_flop"], kind, "tensor_flop.");
    seen_.insert("tensor_flop");
    if (gpu.tensor_flop.empty()) fault("tensor_flop", "names no kind of product");
    if (json.contains("power")) power(json["power"], gpu);
    for (const auto& [field, value] : json.items())
      if (!seen_.count(field) && field != "about" && field != "power")
        fault(field, "is not a field here");
    return failed_ ? std::nullopt : std::optional<Gpu>(gpu);
  }

 private:
  void figures(const Json& json, Gpu& gpu) {
    gpu.multiprocessors = int(number(json, "multiprocessors"));
    gpu.clock_mhz = number(json, "clock_mhz");
    gpu.shared_bytes = int64_t(number(json, "shared_bytes"));
    gpu.registers = int64_t(number(json, "registers"));
    gpu.fp32_lanes = number(json, "fp32_lanes");
    gpu.alu_lanes = number(json, "alu_lanes");
    gpu.mufu_lanes = number(json, "mufu_lanes");
    const Json* max3 = entry(json, "max3", "");
    gpu.max3 = max3 && max3->is_boolean() && max3->get<bool>();
    gpu.issue_interval = number(json, "issue_interval");
    gpu.shared_bytes_per_cycle = number(json, "shared_bytes_per_cycle");
    gpu.l2_bytes_per_cycle = number(json, "l2_bytes_per_cycle");
    gpu.memory_bytes_per_second = number(json, "memory_bytes_per_second");
    gpu.l2_bytes = int64_t(number(json, "l2_bytes"));
    gpu.copy_latency = number(json, "copy_latency");
    gpu.barrier_latency = number(json, "barrier_latency");
    gpu.product_latency = number(json, "product_latency");
    gpu.launch_us = number(json, "launch_us");
  }

  void power(const Json& json, Gpu& gpu) {
    const std::string path = "power.";
    gpu.power = Power{number(json, "exponent", path), number(json, "rested_mhz", path),
                      number(json, "sustained_mhz", path)};
  }

  // The "value" of an entry that also has a source; null after a fault.
  const Json* entry(const Json& json, const std::string& field, const std::string& path) {
    if (path.empty()) seen_.insert(field);
    if (!json.is_object() || !json.contains(field))
      return fault(path + field, "is missing"), nullptr;
    const Json& e = json[field];
    if (!e.is_object() || !e.contains("value")) return fault(path + field, "has no value"), nullptr;
    if (!e.contains("source") || !e["source"].is_string() || e["source"].get<std::string>().empty())
      return fault(path + field, "has no source: say where the figure comes from"), nullptr;
    return &e["value"];
  }

  double number(const Json& json, const std::string& field, const std::string& path = "") {
    const Json* value = entry(json, field, path);
    if (!value) return 1;
    if (!value->is_number() || value->get<double>() <= 0)
      return fault(path + field, "is " + value->dump() + "; a figure is a positive number"), 1;
    return value->get<double>();
  }

  void fault(const std::string& path, const std::string& what) {
    if (!failed_)
      diagnostics_.error("timeline.gpu", {},
                         fmt::format("{}: {} {}", source_->name, path.empty() ? "it" : path, what));
    failed_ = true;
  }

  const SourcePtr& source_;
  Diagnostics& diagnostics_;
  std::set<std::string> seen_;
  bool failed_ = false;
};

}  // namespace

std::optional<Gpu> read_gpu(const std::string& name, const SourcePtr& source,
                            Diagnostics& diagnostics) {
  return Reader(source, diagnostics).read(name);
}

std::optional<Gpu> find_gpu(const std::string& folder, const std::string& name,
                            Diagnostics& diagnostics) {
  namespace fs = std::filesystem;
  std::vector<std::string> there;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error))
    if (file.path().extension() == ".json") there.push_back(file.path().stem().string());
  std::sort(there.begin(), there.end());
  if (std::find(there.begin(), there.end(), name) == there.end()) {
    diagnostics
        .error("timeline.gpu", {},
               fmt::format("no GPU is called '{}'; there are {}", name, fmt::join(there, ", ")))
        .hint = fmt::format(
        "a file {}/{}.json describes another; docs/timeline.md says what is in it", folder, name);
    return std::nullopt;
  }
  const SourcePtr source = read_source((fs::path(folder) / (name + ".json")).string());
  if (!source) {
    diagnostics.error("timeline.gpu", {}, fmt::format("{}/{}.json cannot be read", folder, name));
    return std::nullopt;
  }
  return read_gpu(name, source, diagnostics);
}

std::optional<double> product_rate(const Gpu& gpu, bool async, const std::string& dtype,
                                   Diagnostics& diagnostics) {
  const std::string kind = (async ? "wgmma." : "mma.") + dtype;
  const auto at = gpu.tensor_flop.find(kind);
  if (at != gpu.tensor_flop.end()) return at->second;
  diagnostics.error(
      "timeline.gpu", {},
      fmt::format("the program multiplies by {}, which {} does not have", kind, gpu.name));
  return std::nullopt;
}

}  // namespace kw::timeline
