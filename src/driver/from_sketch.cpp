#include "driver/from_sketch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "lower/print_module.h"
#include "sketch/schedule.h"
#include "sketch/size.h"
#include "support/targets.h"
#include "tl/laws.h"
#include "transfer/pack.h"

namespace kw::driver {
namespace fs = std::filesystem;

std::optional<timeline::Gpu> gpu_for(const Home& home, const std::string& target,
                                     Diagnostics& diagnostics) {
  const fs::path folder = home.root / "gpus";
  std::vector<std::string> names, there;
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(folder, failed))
    if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    auto gpu = timeline::find_gpu(folder.string(), name, diagnostics);
    if (!gpu) return std::nullopt;
    if (std::find(gpu->targets.begin(), gpu->targets.end(), target) != gpu->targets.end())
      return gpu;
    there.push_back(fmt::format("{} ({})", name, fmt::join(gpu->targets, ", ")));
  }
  diagnostics
      .error("sketch.gpu", {},
             fmt::format("no GPU of gpus/ runs {}; there are {}", target, fmt::join(there, ", ")))
      .hint = "describe one in gpus/NAME.json, as docs/timeline.md says";
  return std::nullopt;
}

bool has_expert(const Tools& tools, const std::string& target) {
  const TargetLimits* known = find_target(target);
  return known && !known->folder.empty() &&
         fs::exists(tools.home.kernels() / known->folder / "attention_fwd.cu");
}

namespace {

// Why Hopper's copy engine is left alone for this function; empty where it is not.
std::string no_engine(const spec::Form& form) {
  if (transfer::values_are_of_keys(form))
    return "the values are columns of the keys, and the copy engine's schedule loads whole rows";
  return "";
}

}  // namespace

std::optional<Sketched> from_sketch(const Tools& tools, const spec::Form& form,
                                    const std::string& target, Diagnostics& diagnostics) {
  const auto gpu = gpu_for(tools.home, target, diagnostics);
  if (!gpu) return std::nullopt;
  auto machine = sketch::machine(*gpu, target, diagnostics);
  std::string why;
  if (machine && machine->style == sketch::Style::engine) why = no_engine(form);
  if (!why.empty()) machine->style = sketch::Style::copies;
  const std::string of = transfer::values_are_of_keys(form) ? "latent" : "attention";
  const std::string name_of_file = fmt::format("sketches/{}.tl", of);
  const std::string file = (tools.home.root / name_of_file).string();
  const SourcePtr source = read_source(file);
  if (!source) {
    diagnostics.error("sketch.read", {}, fmt::format("cannot read '{}'", file));
    return std::nullopt;
  }
  const auto drawn = tl::parse(make_source(name_of_file, source->text), diagnostics);
  if (!machine || !drawn || !tl::verify(*drawn, diagnostics)) return std::nullopt;
  const sketch::Request request{
      *machine, {{"D", form.D.constant}, {"V", form.Dv.constant}}, std::string(name(form.dtype))};
  const auto sized = sketch::size(*drawn, request, diagnostics);
  const auto scheduled = sized ? sketch::schedule(*sized, *machine, diagnostics) : std::nullopt;
  const auto text = scheduled ? lower::print_cuda(*scheduled, diagnostics) : std::nullopt;
  if (!text) return std::nullopt;
  const auto values = sketch::parameters(*scheduled);
  const std::string part =
      values.contains("CUT") ? fmt::format(", {} columns of the output", values.at("CUT")) : "";
  return Sketched{make_source(fmt::format("sketched/{}_fwd.cu", of), *text),
                  fmt::format("{} for {}, {}: {} rows, {} keys, {} worker{}{}{}", name_of_file,
                              gpu->name, target, values.at("BM"), values.at("BN"),
                              values.at("WORKERS"), values.at("WORKERS") == 1 ? "" : "s", part,
                              why.empty() ? "" : "; by asynchronous copies: " + why)};
}

}  // namespace kw::driver
