#include "driver/start/from_sketch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "driver/family.h"
#include "driver/start/port.h"
#include "lower/print_module.h"
#include "operator/family.h"
#include "sketch/schedule.h"
#include "sketch/size.h"
#include "support/targets.h"
#include "tl/laws/laws.h"

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
  if (const size_t nul = source->text.find('\0'); nul != std::string::npos)
    return refuse(fmt::format("it is a binary file (NUL byte at offset {})", nul));
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

// ": 128 rows, 64 keys, 2 warpgroups", of what the program says.
std::string sizes_of(const tl::Program& scheduled, const char* columns) {
  const auto values = sketch::parameters(scheduled);
  std::string out;
  for (const auto& [name, what] :
       {std::pair("BM", "row"), {"BN", columns}, {"WARPGROUPS", "warpgroup"}})
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
  const Family& family = Family::of(form);
  const std::optional<Shipped> sketch = family.sketch();
  if (!sketch && file.empty()) {
    diagnostics.error("sketch.family", {},
                      fmt::format("there is no sketch of {}", spec::Family::of(form).what()));
    return std::nullopt;
  }
  const Shipped shipped = sketch.value_or(Shipped{"", "", "column"});
  const auto gpu = gpu_for(tools.home, target, diagnostics);
  auto machine = gpu ? sketch::machine(*gpu, target, diagnostics) : std::nullopt;
  const SourcePtr source = machine ? text_of(tools, shipped, file, diagnostics) : nullptr;
  const auto drawn = source ? tl::parse(source, diagnostics) : std::nullopt;
  if (!drawn || !has_level(*drawn, diagnostics) || !tl::verify(*drawn, diagnostics))
    return std::nullopt;
  std::string why;
  if (machine->style == sketch::Style::engine) why = family.no_engine();
  if (!why.empty()) machine->style = sketch::Style::copies;
  sketch::Request request{*machine, {}, std::string(name(form.dtype))};
  for (const auto& [name, value] : family.constants(form)) request.params[name] = value;
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
