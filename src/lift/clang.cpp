// Tokens are clang's, but their text is taken from the source's bytes: a trigraph or a continued
// line inside a token then matches nothing. A backslash at the end of a line is refused outright,
// since it hides from the tokens where a directive ends.
#include "lift/clang.h"

#include <clang-c/Index.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

#include "lift/closed.h"
#include "lift/shim.h"
#include "tl/syntax/renamed.h"

namespace kw::lift {
namespace {
namespace fs = std::filesystem;

constexpr const char* kMain = "/kernelwright/kernel.cu";
constexpr const char* kShim = "/kernelwright/shim.h";

// clang-format off
#define KW_CLANG_FUNCTIONS(F) \
  F(createIndex) F(disposeIndex) F(parseTranslationUnit2) F(disposeTranslationUnit) \
  F(getNumDiagnostics) F(getDiagnostic) F(disposeDiagnostic) F(getDiagnosticSeverity) \
  F(getDiagnosticSpelling) F(getDiagnosticLocation) F(getFileLocation) F(getFileName) \
  F(getCString) F(disposeString) F(getFile) F(getLocationForOffset) F(getRange) F(tokenize) \
  F(disposeTokens) F(getTokenKind) F(getTokenExtent) F(getRangeStart) F(getRangeEnd) \
  F(getClangVersion)
// clang-format on

struct Library {
#define F(name) decltype(&clang_##name) name = nullptr;
  KW_CLANG_FUNCTIONS(F)
#undef F
};

// Null and why, if the library cannot be used.
std::unique_ptr<Library> open_library(const std::string& path, std::string& why) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    why = dlerror();
    return nullptr;
  }
  auto library = std::make_unique<Library>();
  bool complete = true;
#define F(name)                                                                             \
  library->name = reinterpret_cast<decltype(library->name)>(dlsym(handle, "clang_" #name)); \
  complete &= library->name != nullptr;
  KW_CLANG_FUNCTIONS(F)
#undef F
  if (complete) return library;
  why = path + " lacks functions of libclang's C interface";
  return nullptr;
}

// Libraries stay loaded: clang keeps global state, and commands use one.
const Library* load(const Toolchain& toolchain, Diagnostics& diagnostics) {
  static std::map<std::string, std::unique_ptr<Library>> loaded;
  std::string reasons;
  for (const std::string& path : toolchain.libclang) {
    if (const auto known = loaded.find(path); known != loaded.end()) return known->second.get();
    std::string why;
    if (auto library = open_library(path, why)) return (loaded[path] = std::move(library)).get();
    reasons += (reasons.empty() ? "" : "; ") + why;
  }
  diagnostics.error("lift.libclang", {}, "no libclang can be loaded").hint =
      "pip install libclang, or set KERNELWRIGHT_LIBCLANG to a libclang.so" +
      (toolchain.libclang.size() == 1 ? " (" + reasons + ")" : "");
  return nullptr;
}

std::string text_of(const Library& c, CXString s) {
  const char* chars = c.getCString(s);
  std::string out = chars ? chars : "";
  c.disposeString(s);
  return out;
}

// "`kw::deal` is now `kw::static_tiles`" where clang misses a name that the vocabulary had before;
// else its message.
std::string reworded(const std::string& message) {
  const size_t begin = message.find('\'') + 1, end = message.find("' in namespace 'kw'");
  const bool names_one = begin > 0 && end != std::string::npos && begin <= end;
  const std::string was = names_one ? message.substr(begin, end - begin) : "";
  const std::string_view now = tl::new_name(was);
  return now.empty() ? "no valid CUDA: " + message
                     : fmt::format("`kw::{}` is now `kw::{}`", was, now);
}

void report(const Library& c, CXDiagnostic d, const SourcePtr& cuda, Diagnostics& diagnostics) {
  CXFile file = nullptr;
  unsigned offset = 0;
  c.getFileLocation(c.getDiagnosticLocation(d), &file, nullptr, nullptr, &offset);
  const std::string name = file ? text_of(c, c.getFileName(file)) : "";
  std::string message = text_of(c, c.getDiagnosticSpelling(d));
  Span span;
  if (name == kMain)
    span = {cuda, offset, std::min<uint32_t>(offset + 1, cuda->text.size())};
  else if (!name.empty())
    message += " (in " + name + ")";
  diagnostics.error("lift.invalid", span, reworded(message));
}

bool report_errors(const Library& c, CXTranslationUnit unit, const SourcePtr& cuda,
                   Diagnostics& diagnostics) {
  constexpr int kMost = 5;  // later ones mostly follow from the first
  int errors = 0;
  for (unsigned k = 0; k < c.getNumDiagnostics(unit); ++k) {
    CXDiagnostic d = c.getDiagnostic(unit, k);
    if (c.getDiagnosticSeverity(d) >= CXDiagnostic_Error && ++errors <= kMost)
      report(c, d, cuda, diagnostics);
    c.disposeDiagnostic(d);
  }
  return errors > 0;
}

std::vector<tl::Token> tokens_of(const Library& c, CXTranslationUnit unit,
                                 const std::string& text) {
  const CXFile file = c.getFile(unit, kMain);
  const CXSourceRange all = c.getRange(c.getLocationForOffset(unit, file, 0),
                                       c.getLocationForOffset(unit, file, text.size()));
  CXToken* tokens = nullptr;
  unsigned count = 0;
  c.tokenize(unit, all, &tokens, &count);
  std::vector<tl::Token> out;
  bool directive = false;
  for (unsigned k = 0; k < count; ++k) {
    if (c.getTokenKind(tokens[k]) == CXToken_Comment) continue;
    const CXSourceRange extent = c.getTokenExtent(unit, tokens[k]);
    unsigned begin = 0, end = 0;
    c.getFileLocation(c.getRangeStart(extent), nullptr, nullptr, nullptr, &begin);
    c.getFileLocation(c.getRangeEnd(extent), nullptr, nullptr, nullptr, &end);
    if (directive && text.find('\n', out.back().end) < begin) {  // the directive's line has ended
      out.push_back({"\n", out.back().end, out.back().end});
      directive = false;
    }
    out.push_back({text.substr(begin, end - begin), begin, end});
    directive |= out.back().text == "#";
  }
  if (directive) out.push_back({"\n", out.back().end, out.back().end});
  c.disposeTokens(unit, tokens, count);
  return out;
}

bool continues_a_line(const SourcePtr& cuda, Diagnostics& diagnostics) {
  for (const char* end : {"\\\n", "\\\r\n"}) {
    const size_t at = cuda->text.find(end);
    if (at == std::string::npos) continue;
    diagnostics.error("lift.unrecognised", Span{cuda, uint32_t(at), uint32_t(at + 1)},
                      "a backslash continues the line");
    return true;
  }
  return false;
}

// The parser calls itself at every bracket; of braces outside functions nothing bounds how deep.
bool nests_too_deeply(const SourcePtr& cuda, Diagnostics& diagnostics) {
  constexpr int kDeepest = 500;
  int depth = 0;
  for (size_t at = 0; at < cuda->text.size(); ++at) {
    const char c = cuda->text[at];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth <= kDeepest) continue;
    diagnostics.error("lift.invalid", Span{cuda, uint32_t(at), uint32_t(at + 1)},
                      fmt::format("no valid CUDA: more than {} open brackets", kDeepest));
    return true;
  }
  return false;
}

void add_wheel(const fs::path& environment, std::vector<std::string>& out) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(environment / "lib", ignored)) {
    const fs::path file = entry.path() / "site-packages/clang/native/libclang.so";
    if (fs::exists(file, ignored)) out.push_back(file.string());
  }
}

}  // namespace

Toolchain find_toolchain(std::string include, const std::vector<std::string>& environments) {
  Toolchain out{std::move(include), {}};
  if (const char* given = std::getenv("KERNELWRIGHT_LIBCLANG"); given && *given) {
    out.libclang.push_back(given);
    return out;
  }
  if (const char* active = std::getenv("VIRTUAL_ENV")) add_wheel(active, out.libclang);
  for (const std::string& e : environments) add_wheel(e, out.libclang);
  for (int version = 21; version >= 14; --version) {
    const std::string v = std::to_string(version);
    for (const std::string& name : {"/usr/lib/llvm-" + v + "/lib/libclang-" + v + ".so.1",
                                    "/usr/lib/llvm-" + v + "/lib/libclang.so.1",
                                    "libclang-" + v + ".so." + v, "libclang.so." + v})
      out.libclang.push_back(name);
  }
  out.libclang.push_back("libclang.so");
  return out;
}

std::optional<std::string> clang_version(const Toolchain& toolchain, Diagnostics& diagnostics) {
  const Library* c = load(toolchain, diagnostics);
  if (!c) return std::nullopt;
  return text_of(*c, c->getClangVersion());
}

std::optional<std::vector<tl::Token>> cuda_tokens(const SourcePtr& cuda, const Toolchain& toolchain,
                                                  Diagnostics& diagnostics) {
  const Library* c = load(toolchain, diagnostics);
  if (!c || continues_a_line(cuda, diagnostics) || nests_too_deeply(cuda, diagnostics) ||
      !reads_only_the_vocabulary(cuda, toolchain.include, diagnostics))
    return std::nullopt;
  const std::string include = "-I" + toolchain.include;
  // Any architecture that old clangs know will do: instructions are text in asm statements.
  const char* args[] = {"-x",
                        "cuda",
                        "--cuda-device-only",
                        "-nocudainc",
                        "-nocudalib",
                        "-std=c++20",
                        "--cuda-gpu-arch=sm_80",
                        "-Wno-unknown-cuda-version",
                        "-w",
                        "-nostdinc",
                        "-include",
                        kShim,
                        include.c_str()};
  CXUnsavedFile files[] = {{kMain, cuda->text.data(), cuda->text.size()},
                           {kShim, kCudaShim, std::char_traits<char>::length(kCudaShim)}};
  CXIndex index = c->createIndex(0, 0);
  CXTranslationUnit unit = nullptr;
  const CXErrorCode code = c->parseTranslationUnit2(
      index, kMain, args, std::size(args), files, std::size(files), CXTranslationUnit_None, &unit);
  std::optional<std::vector<tl::Token>> out;
  if (code != CXError_Success)
    diagnostics.error("lift.libclang", {}, "libclang gave up with code " + std::to_string(code));
  else if (!report_errors(*c, unit, cuda, diagnostics))
    out = tokens_of(*c, unit, cuda->text);
  if (unit) c->disposeTranslationUnit(unit);
  c->disposeIndex(index);
  return out;
}

}  // namespace kw::lift
