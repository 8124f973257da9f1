// The dozen functions of NVRTC that we call, declared here: nvrtc.h need not be installed, and its
// C interface has not changed since CUDA 11. See "NVRTC (Runtime Compilation)", chapter 3.
#include "compile/nvrtc.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>

#include "support/includes.h"
#include "support/shared_object.h"

namespace kw::runtime {
namespace {

constexpr int success = 0;

}  // namespace

struct Nvrtc::Library {
  using Program = struct _nvrtcProgram*;
  std::shared_ptr<SharedObject> object;
  const char* (*error_string)(int);
  int (*version)(int*, int*);
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const* texts,
                const char* const* names);
  int (*destroy)(Program*);
  int (*compile)(Program, int count, const char* const* options);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
  int (*ptx_size)(Program, size_t*);
  int (*ptx)(Program, char*);

  static std::shared_ptr<const Library> open(const std::string& path, std::string& why) {
    auto library = std::make_shared<Library>();
    library->object = SharedObject::open(path, why);
    if (!library->object) return nullptr;
    const SharedObject& object = *library->object;
    if (object.find("nvrtcGetErrorString", library->error_string) &&
        object.find("nvrtcVersion", library->version) &&
        object.find("nvrtcCreateProgram", library->create) &&
        object.find("nvrtcDestroyProgram", library->destroy) &&
        object.find("nvrtcCompileProgram", library->compile) &&
        object.find("nvrtcGetProgramLogSize", library->log_size) &&
        object.find("nvrtcGetProgramLog", library->log) &&
        object.find("nvrtcGetCUBINSize", library->cubin_size) &&
        object.find("nvrtcGetCUBIN", library->cubin) &&
        object.find("nvrtcGetPTXSize", library->ptx_size) &&
        object.find("nvrtcGetPTX", library->ptx))
      return library;
    why = path + ": not NVRTC of CUDA 11.1 or later (a function is missing)";
    return nullptr;
  }

  // One of NVRTC's results, by its pair of functions: size, then bytes.
  std::string result(Program program, int (*size)(Program, size_t*),
                     int (*get)(Program, char*)) const {
    size_t bytes = 0;
    if (size(program, &bytes) != success || bytes == 0) return {};
    std::string text(bytes, '\0');
    return get(program, text.data()) == success ? text : std::string();
  }
};

namespace {

// The whole of line `line` of `source`, without its indentation.
Span line_span(const SourcePtr& source, int line) {
  const std::string_view text = line_of(*source, line);
  if (text.empty()) return {source, 0, 0};
  const uint32_t begin = static_cast<uint32_t>(text.data() - source->text.data());
  const uint32_t indent =
      static_cast<uint32_t>(std::min(text.find_first_not_of(" \t"), text.size()));
  return {source, begin + indent, begin + static_cast<uint32_t>(text.size())};
}

// The front end's errors at their lines. Its warnings are the text's author's affair, not ours.
void report_errors(const CompileLog& log, const SourcePtr& kernel,
                   const std::vector<Header>& headers, Diagnostics& diagnostics) {
  std::map<std::string, SourcePtr> sources = {{kernel->name, kernel}};
  for (const Header& header : headers)
    sources.emplace(header.name, make_source(header.name, header.text));
  for (const CompilerMessage& message : log.messages) {
    if (!message.is_error) continue;
    const auto source = sources.find(message.file);
    if (source == sources.end())
      diagnostics.error("build.compile", {},
                        fmt::format("{}:{}: {}", message.file, message.line, message.message));
    else
      diagnostics.error("build.compile", line_span(source->second, message.line), message.message);
  }
  for (const std::string& line : log.fatal) diagnostics.error("build.compile", {}, line);
}

void report_slowness(const CompileLog& log, Diagnostics& diagnostics) {
  for (const EntryResources& entry : log.entries)
    if (entry.spill_stores > kParkedBytes)
      diagnostics
          .error("build.spill", {},
                 fmt::format("{} spills: {} bytes of stores, {} bytes of loads, with {} "
                             "registers a thread",
                             entry.entry, entry.spill_stores, entry.spill_loads, entry.registers))
          .hint = "use smaller tiles, fewer values alive at once, or more registers a warpgroup";
  for (const std::string& line : log.losses)
    diagnostics.error("build.performance_loss", {}, line).hint =
        "ptxas serialises such instructions: wait for the tiles before they are touched, and keep "
        "them out of branches";
}

// NVRTC keeps its results where a driver is installed, and gives a kept one without a word of its
// registers and spills.
std::vector<std::string> options_for(const std::string& target, int version,
                                     const std::vector<std::string>& extra) {
  std::vector<std::string> options = {"-arch=" + target, "-std=c++20", "--ptxas-options=-v"};
  if (version >= 13) options.push_back("--no-cache");
  options.insert(options.end(), extra.begin(), extra.end());
  return options;
}

// NVRTC looks on the disk for what it does not find among the headers: in the folders of `extra`,
// where it has any, and for what stands in quotes everywhere.
bool includes_headers_alone(const SourcePtr& kernel, const std::vector<Header>& headers,
                            const std::vector<std::string>& extra, Diagnostics& diagnostics) {
  const bool folders = std::ranges::any_of(
      extra, [](const std::string& option) { return option.starts_with("-I"); });
  const auto check = [&](const std::string& name, const SourcePtr& source) {
    const auto asked = asks_for_a_file(name, source->text, folders);
    if (!asked) return true;
    const uint32_t at = static_cast<uint32_t>(asked->at);
    diagnostics.error("build.include", Span{source, at, at + 1}, asked->message);
    return false;
  };
  bool closed = check("", kernel);
  for (const Header& header : headers)
    closed = closed && check(header.name, make_source(header.name, header.text));
  return closed;
}

std::vector<const char*> pointers(const std::vector<std::string>& strings) {
  std::vector<const char*> out;
  for (const std::string& s : strings) out.push_back(s.c_str());
  return out;
}

}  // namespace

std::optional<Nvrtc> Nvrtc::find(const std::string& python, Diagnostics& diagnostics) {
  std::vector<std::string> refusals;
  for (const std::string& candidate : nvrtc_candidates(python)) {
    std::string why;
    Nvrtc nvrtc;
    nvrtc.library_ = Library::open(candidate, why);
    if (nvrtc.library_) return nvrtc;
    refusals.push_back(why);
  }
  Diagnostic& error =
      diagnostics.error("build.no_nvrtc", {}, "no NVRTC is installed where it was looked for");
  for (const std::string& why : refusals) error.notes.push_back({why, {}});
  error.hint =
      "install PyTorch for CUDA, or a CUDA toolkit, or name a libnvrtc.so in the "
      "environment variable KERNELWRIGHT_NVRTC";
  return std::nullopt;
}

const std::string& Nvrtc::path() const { return library_->object->path(); }

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  library_->version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

std::optional<Compiled> Nvrtc::compile(const SourcePtr& kernel, const std::vector<Header>& headers,
                                       const std::string& target,
                                       const std::vector<std::string>& extra,
                                       Diagnostics& diagnostics) const {
  static const std::regex target_form("sm_[0-9]+[af]?");
  if (!std::regex_match(target, target_form)) {
    diagnostics.error("build.target", {},
                      fmt::format("target '{}' is not of the form sm_90a", target));
    return std::nullopt;
  }
  if (!includes_headers_alone(kernel, headers, extra, diagnostics)) return std::nullopt;
  std::vector<std::string> resolved;
  for (const Header& header : headers)
    resolved.push_back(with_full_includes(header.name, header.text, headers));
  const std::vector<const char*> texts = pointers(resolved);
  std::vector<const char*> names;
  for (const Header& header : headers) names.push_back(header.name.c_str());
  const std::string text = with_full_includes(kernel->name, kernel->text, headers);
  const auto start = std::chrono::steady_clock::now();
  Nvrtc::Library::Program program = nullptr;
  int status = library_->create(&program, text.c_str(), kernel->name.c_str(),
                                static_cast<int>(headers.size()), texts.data(), names.data());
  if (status != success) {
    diagnostics.error("build.nvrtc", {},
                      fmt::format("nvrtcCreateProgram: {}", library_->error_string(status)));
    return std::nullopt;
  }
  int major = 0, minor = 0;
  library_->version(&major, &minor);
  const std::vector<std::string> options = options_for(target, major, extra);
  status = library_->compile(program, static_cast<int>(options.size()), pointers(options).data());

  Compiled compiled;
  compiled.log = library_->result(program, library_->log_size, library_->log);
  while (!compiled.log.empty() && compiled.log.back() == '\0') compiled.log.pop_back();
  if (status == success) {
    compiled.cubin = library_->result(program, library_->cubin_size, library_->cubin);
    compiled.ptx = library_->result(program, library_->ptx_size, library_->ptx);
  }
  library_->destroy(&program);
  compiled.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const CompileLog log = parse_compile_log(compiled.log);
  const size_t before = diagnostics.all().size();
  if (status != success) {
    report_errors(log, kernel, headers, diagnostics);
    if (diagnostics.all().size() == before)
      diagnostics.error("build.compile", {},
                        fmt::format("NVRTC {} for {}: {}\n{}", version(), target,
                                    library_->error_string(status), compiled.log));
    return std::nullopt;
  }
  // How fast the small algebra runs is nobody's concern: its numbers take twice the registers.
  const bool exact = std::find(extra.begin(), extra.end(), "-DKW_EXACT") != extra.end();
  if (!exact) report_slowness(log, diagnostics);
  if (diagnostics.all().size() != before) return std::nullopt;
  compiled.entries = log.entries;
  compiled.dead_globals = dead_globals(compiled.ptx);
  return compiled;
}

}  // namespace kw::runtime
