#include "driver/from_sketch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "driver/port.h"
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

// The sketch that the project has for a function, what its kernel is called, and what a block of BN
// has so many of.
struct Shipped {
  const char *file, *kernel, *columns;
};
Shipped shipped_for(const spec::Form& form) {
  if (form.product) return {"sketches/product.tl", "gemm", "column"};
  if (transfer::values_are_of_keys(form)) return {"sketches/latent.tl", "latent_fwd", "key"};
  return {"sketches/attention.tl", "attention_fwd", "key"};
}

// Why Hopper's copy engine is left alone for this function; empty where it is not.
std::string no_engine(const spec::Form& form) {
  if (!form.product && transfer::values_are_of_keys(form))
    return "the values are columns of the keys, and the copy engine's schedule loads whole rows";
  return "";
}

// The text of the user's file, or of the shipped sketch under its name in the project.
SourcePtr text_of(const Tools& tools, const Shipped& shipped, const std::string& file,
                  Diagnostics& diagnostics) {
  const std::string path = file.empty() ? (tools.home.root / shipped.file).string() : file;
  const auto refuse = [&](const std::string& why) {
    diagnostics.error("sketch.read", {}, fmt::format("cannot read '{}': {}", path, why)).hint =
        "name a program of TL: a sketch, a sized or a scheduled one (docs/sketches.md)";
    return nullptr;
  };
  std::error_code failed;
  if (fs::is_directory(path, failed)) return refuse(std::strerror(EISDIR));
  errno = 0;
  const SourcePtr source = read_source(path);
  if (!source) return refuse(std::strerror(errno));
  if (source->text.find('\0') != std::string::npos) return refuse("it is no text");
  return file.empty() ? make_source(shipped.file, source->text) : source;
}

// Before the laws, all of which ask for the level.
bool has_level(const tl::Program& program, Diagnostics& diagnostics) {
  const std::string level = sketch::level_of(program);
  for (const char* known : {"sketch", "sized", "scheduled"})
    if (level == known) return true;
  diagnostics
      .error(
          "sketch.level", program.find(tl::Op::level)->span,
          fmt::format("the module's level is {}, and there are sketch, sized and scheduled", level))
      .hint = "a module without this line is scheduled";
  return false;
}

// The steps from the program's level on.
std::optional<tl::Program> scheduled_from(const tl::Program& drawn, const sketch::Request& request,
                                          Diagnostics& diagnostics) {
  const std::string level = sketch::level_of(drawn);
  if (level == "scheduled") return drawn;
  if (level == "sized") return sketch::schedule(drawn, request.machine, diagnostics);
  const auto sized = sketch::size(drawn, request, diagnostics);
  return sized ? sketch::schedule(*sized, request.machine, diagnostics) : std::nullopt;
}

// ": 128 rows, 64 keys, 2 workers", of what the program says.
std::string sizes_of(const tl::Program& scheduled, const char* columns) {
  const auto values = sketch::parameters(scheduled);
  std::string out;
  for (const auto& [name, what] : {std::pair("BM", "row"), {"BN", columns}, {"WORKERS", "worker"}})
    if (const auto at = values.find(name); at != values.end())
      out += fmt::format("{} {} {}{}", out.empty() ? ":" : ",", at->second, what,
                         at->second == 1 ? "" : "s");
  if (const auto cut = values.find("CUT"); cut != values.end())
    out += fmt::format(", {} columns of the output", cut->second);
  return out;
}

}  // namespace

std::optional<Sketched> from_sketch(const Tools& tools, const spec::Form& form,
                                    const std::string& target, const std::string& file,
                                    Diagnostics& diagnostics) {
  const Shipped shipped = shipped_for(form);
  const auto gpu = gpu_for(tools.home, target, diagnostics);
  auto machine = gpu ? sketch::machine(*gpu, target, diagnostics) : std::nullopt;
  const SourcePtr source = machine ? text_of(tools, shipped, file, diagnostics) : nullptr;
  const auto drawn = source ? tl::parse(source, diagnostics) : std::nullopt;
  if (!drawn || !has_level(*drawn, diagnostics) || !tl::verify(*drawn, diagnostics))
    return std::nullopt;
  std::string why;
  if (machine->style == sketch::Style::engine) why = no_engine(form);
  if (!why.empty()) machine->style = sketch::Style::copies;
  sketch::Request request{*machine, {}, std::string(name(form.dtype))};
  if (!form.product) request.params = {{"D", form.D.constant}, {"V", form.Dv.constant}};
  const auto scheduled = scheduled_from(*drawn, request, diagnostics);
  const auto text = scheduled ? lower::print_cuda(*scheduled, diagnostics) : std::nullopt;
  if (!text) return std::nullopt;
  const std::string stem = file.empty() ? shipped.kernel : fs::path(file).stem().string();
  const std::string who = file.empty() ? shipped.file
                                       : fmt::format("{}, {},", fs::path(file).filename().string(),
                                                     sketch::level_of(*drawn));
  Diagnostics why_not;
  return Sketched{make_source(fmt::format("sketched/{}.cu", stem), *text),
                  fmt::format("{} for {}, {}{}{}", who, gpu->name, target,
                              sizes_of(*scheduled, shipped.columns),
                              why.empty() ? "" : "; by asynchronous copies: " + why),
                  sketch::level_of(*drawn) != "sketch", is_plain(*drawn, why_not)};
}

}  // namespace kw::driver
