#include "driver/environment/tools.h"

#include <fmt/format.h>

#include "compile/compile_log.h"
#include "compile/cubin.h"
#include "lift/closed.h"

namespace kw::driver {
namespace fs = std::filesystem;

std::optional<Tools> find_tools(Diagnostics& diagnostics) {
  const std::optional<Home> home = find_home(diagnostics);
  if (!home) return std::nullopt;
  Tools tools{*home, find_python(*home), {}};
  const fs::path environment = fs::path(tools.python).parent_path().parent_path();
  tools.clang = lift::find_toolchain(home->vocabulary().string(), {environment.string()});
  return tools;
}

std::optional<Built> build(const Tools& tools, const SourcePtr& kernel, const std::string& target,
                           const std::vector<std::string>& entries, int64_t parameter_bytes,
                           Diagnostics& diagnostics, const std::vector<std::string>& extra) {
  if (extra.empty() && !lift::has_no_macros(kernel, diagnostics)) return std::nullopt;
  const std::optional<runtime::Nvrtc> nvrtc = runtime::Nvrtc::find(tools.python, diagnostics);
  if (!nvrtc) return std::nullopt;
  std::vector<runtime::Header> headers;
  for (auto& [name, text] : vocabulary_files(tools.home)) headers.push_back({name, text});
  const auto compiled = nvrtc->compile(kernel, headers, target, extra, diagnostics);
  if (!compiled) return std::nullopt;
  runtime::CubinExpectation expected{target, entries, compiled->dead_globals, std::nullopt};
  if (parameter_bytes) expected.parameter_bytes = static_cast<int>(parameter_bytes);
  runtime::audit_cubin(compiled->cubin, expected, diagnostics);
  for (const std::string& entry : runtime::unreported(compiled->entries, entries))
    diagnostics
        .error("build.unreported", {},
               fmt::format("NVRTC {}: ptxas reported no resource usage for kernel {}; its spills "
                           "cannot be checked",
                           nvrtc->version(), entry))
        .hint = "its result may come from a cache: set CUDA_CACHE_DISABLE=1";
  if (diagnostics.has_errors()) return std::nullopt;
  Built built{compiled->cubin, {}, "NVRTC " + nvrtc->version(), compiled->seconds};
  for (const runtime::EntryResources& e : compiled->entries)
    if (e.entry == entries[0]) built.resources = e;
  return built;
}

Exit exit_for(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all())
    if (d.severity == Severity::error && d.code.rfind("internal.", 0) == 0) return Exit::own_fault;
  return Exit::bad_input;
}

}  // namespace kw::driver
