#include "driver/environment/tools.h"

#include <fmt/format.h>

#include "compile/compile_log.h"
#include "compile/cubin.h"
#include "support/files.h"
#include "support/process.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

std::string last_lines(const std::string& text, int count) {
  size_t at = text.size();
  while (count-- > 0 && at != std::string::npos && at > 0) at = text.rfind('\n', at - 1);
  return at == std::string::npos ? text : text.substr(at + 1);
}

}  // namespace

std::optional<Tools> find_tools(Diagnostics& diagnostics) {
  const std::optional<Home> home = find_home(diagnostics);
  if (!home) return std::nullopt;
  Tools tools{*home, find_python(*home), {}};
  const fs::path environment = fs::path(tools.python).parent_path().parent_path();
  tools.clang = lift::find_toolchain(home->vocabulary().string(), {environment.string()});
  return tools;
}

std::optional<spec::Capture> capture(const Tools& tools, const spec::CaptureRequest& request,
                                     Diagnostics& diagnostics) {
  if (!fs::is_regular_file(request.spec)) {
    diagnostics.error("spec.file", {}, fmt::format("there is no file '{}'", request.spec));
    return std::nullopt;
  }
  // Safe path: a json.py of the user's where the command runs is not Python's own. The folder of
  // the specification is looked through all the same, once the file is loaded.
  std::vector<std::string> command = {"env", "PYTHONSAFEPATH=1",
                                      "PYTHONPATH=" + tools.home.python().string()};
  for (const std::string& word : spec::capture_command(request, tools.python))
    command.push_back(word);
  const ProcessResult run = run_process(command, {}, 120);
  if (run.exit_code == 0) return spec::load_capture(request.out, diagnostics);
  if (run.exit_code == 2 && spec::read_problems(run.out, diagnostics)) return std::nullopt;
  const bool no_torch = run.err.find("No module named 'torch'") != std::string::npos;
  Diagnostic& d =
      diagnostics.error(no_torch ? "driver.python" : "internal.capture", {},
                        run.timed_out ? "capture ran past 120 s and was ended"
                                      : fmt::format("capture ended with exit code {}: {}",
                                                    run.exit_code, last_lines(run.err, 3)));
  if (no_torch) d.hint = fmt::format("'{}' has no PyTorch; run scripts/setup", tools.python);
  return std::nullopt;
}

std::optional<spec::Capture> open_spec(const Tools& tools, const spec::CaptureRequest& request,
                                       Diagnostics& diagnostics) {
  if (fs::is_directory(request.spec)) return spec::load_capture(request.spec, diagnostics);
  if (!request.out.empty()) return capture(tools, request, diagnostics);
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    diagnostics.error("driver.scratch", {}, "cannot make a temporary folder").hint =
        "set TMPDIR to a folder that can be written";
    return std::nullopt;
  }
  spec::CaptureRequest there = request;
  there.out = folder.path();
  return capture(tools, there, diagnostics);
}

std::optional<Built> build(const Tools& tools, const SourcePtr& kernel, const std::string& target,
                           const std::vector<std::string>& entries, int64_t parameter_bytes,
                           Diagnostics& diagnostics, const std::vector<std::string>& extra) {
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
