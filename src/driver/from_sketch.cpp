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

std::optional<Sketched> from_sketch(const Tools& tools, const spec::Form& form,
                                    const std::string& target, Diagnostics& diagnostics) {
  const auto gpu = gpu_for(tools.home, target, diagnostics);
  if (!gpu) return std::nullopt;
  const auto machine = sketch::machine(*gpu, target, diagnostics);
  const std::string name_of = form.product ? "sketches/product.tl" : "sketches/attention.tl";
  const std::string file = (tools.home.root / name_of).string();
  const SourcePtr source = read_source(file);
  if (!source) {
    diagnostics.error("sketch.read", {}, fmt::format("cannot read '{}'", file));
    return std::nullopt;
  }
  const auto drawn = tl::parse(make_source(name_of, source->text), diagnostics);
  if (!machine || !drawn || !tl::verify(*drawn, diagnostics)) return std::nullopt;
  sketch::Request request{*machine, {}, std::string(name(form.dtype))};
  if (!form.product) request.params = {{"D", form.D.constant}, {"V", form.Dv.constant}};
  const auto sized = sketch::size(*drawn, request, diagnostics);
  const auto scheduled = sized ? sketch::schedule(*sized, *machine, diagnostics) : std::nullopt;
  const auto text = scheduled ? lower::print_cuda(*scheduled, diagnostics) : std::nullopt;
  if (!text) return std::nullopt;
  const auto values = sketch::parameters(*scheduled);
  return Sketched{
      make_source(form.product ? "sketched/gemm.cu" : "sketched/attention_fwd.cu", *text),
      fmt::format("{} for {}, {}: {} rows, {} {}, {} worker{}", name_of, gpu->name, target,
                  values.at("BM"), values.at("BN"), form.product ? "columns" : "keys",
                  values.at("WORKERS"), values.at("WORKERS") == 1 ? "" : "s")};
}

}  // namespace kw::driver
