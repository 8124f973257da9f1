#include "driver/export/export_hf.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "driver/certificate/verify.h"
#include "support/files.h"
#include "support/version.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kReadMe = R"(---
library_name: kernels
license: apache-2.0
tags: [kernels, attention, cuda]
---
# {name}

An attention kernel for `{target}`, made by kernelwright {version} from a PyTorch function. Its check says
*{verdict}* ({holds_for}); `build/*/kernel/certificate.json` says what was checked and what was not.

```
{form}```

```python
from kernels import get_kernel
repository = "YOUR-NAME/{name}"  # it runs code from there: list only what you trust
{function} = get_kernel(repository, version={number}, trust_remote_code=[repository]).{function}
out = {function}({arguments})
```

Tensors have the shapes, types and order that the function's arguments had, with any batch and sequence
lengths. Whatever does not fit is refused with a `LaunchError` that names the argument.
)";

constexpr const char* kInit =
    R"("""{function}: an attention kernel for {target}, made by kernelwright {version}. The certificate is in kernel/."""

from pathlib import Path

from .exported import Function
from .library import LaunchError

{function} = Function(Path(__file__).parent / "kernel")

__all__ = ["LaunchError", "{function}"]
)";

std::string replaced(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values)
    for (size_t at; (at = text.find("{" + name + "}")) != std::string::npos;)
      text.replace(at, name.size() + 2, value);
  return text;
}

// A function is named after its file, which may be called 2-rotary.py: Python wants 2_rotary to
// begin with a letter.
std::string identifier(const std::string& name) {
  const std::string word = std::regex_replace(name, std::regex("[^A-Za-z0-9_]"), "_");
  return std::isalpha(static_cast<unsigned char>(word[0])) ? word : "kernel_" + word;
}

// "prefix_lm" is called prefix-lm on the Hub: lower-case letters, digits and dashes, two or more.
std::string hub_name(const std::string& identifier) {
  std::string name = std::regex_replace(identifier, std::regex("_+"), "-");
  while (name.back() == '-') name.pop_back();
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name.size() < 2 ? name + "-kernel" : name;
}

// "sm_90a" -> "9.0a".
std::string capability(const std::string& target) {
  return std::regex_replace(target, std::regex(R"(sm_(\d+)(\d)(\w*))"), "$1.$2$3");
}

// "NVRTC 13.0" -> "cu130".
std::string cuda_of(const std::string& compiler) {
  return "cu" + std::regex_replace(compiler, std::regex("[^0-9]"), "");
}

// The modules of our package that `module` needs, itself among them: what it imports relatively.
void add_modules(const fs::path& package, const std::string& module, std::set<std::string>& found) {
  if (!found.insert(module).second) return;
  const SourcePtr file = read_source((package / (module + ".py")).string());
  if (!file) return;
  static const std::regex import(R"(from \.(\w+) import)");
  for (std::sregex_iterator at(file->text.begin(), file->text.end(), import), end; at != end; ++at)
    add_modules(package, (*at)[1], found);
}

class Exporter {
 public:
  Exporter(const ExportOptions& options, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics), folder_(options.folder) {}

  bool run() { return find() && read() && free_to_write() && write(); }

 private:
  bool refuse(const char* code, const std::string& what, const std::string& hint) {
    diagnostics_.error(code, {}, what).hint = hint;
    return false;
  }

  bool find() {
    home_ = find_home(diagnostics_);
    if (home_) library_ = launch_library(diagnostics_);
    return library_.has_value();
  }

  // The text of a file of the folder, which must be the one that the certificate names.
  std::string text_of(const std::string& name) {
    const SourcePtr file = read_source((folder_ / name).string());
    const bool named = claims_["files"].contains(name);
    if (file && named && claims_["files"][name] == sha256(file->text)) return file->text;
    refuse("export.folder",
           fmt::format("{}: {} {}", folder_.string(), name,
                       !file    ? "is missing"
                       : !named ? "is not among the certificate's files"
                                : "is not the file that the certificate was written for"),
           "make the kernel again");
    return {};
  }

  bool read() {
    const auto schema = certificate_schema(*home_, diagnostics_);
    const SourcePtr text = read_source((folder_ / "certificate.json").string());
    if (!text)
      return refuse("export.folder", fmt::format("{} has no certificate.json", folder_.string()),
                    "name a folder that `kernelwright make` wrote");
    const auto claims = schema ? read_certificate(text, *schema, diagnostics_) : std::nullopt;
    if (!claims) return false;
    claims_ = *claims;
    files_["certificate.json"] = text->text;
    if (claims_["verdict"] != "holds")
      return refuse("export.verdict",
                    fmt::format("the certificate's verdict is {}, and only what holds is exported",
                                claims_["verdict"].dump()),
                    "`kernelwright verify` says more");
    for (const char* name : {"kernel.cubin", "launch.json"}) files_[name] = text_of(name);
    const std::string graph = text_of("from/graph.json");
    if (diagnostics_.has_errors()) return false;
    function_ = identifier(claims_["spec"]["name"]);
    const OrderedJson captured = OrderedJson::parse(graph);
    OrderedJson arguments = OrderedJson::array();
    for (const OrderedJson& a : captured["arguments"]) arguments.push_back(a["name"]);
    signature_ = {{"function", function_},
                  {"target", claims_["target"]},
                  {"arguments", arguments},
                  {"outputs", captured["outputs"].size()},
                  {"bindings", claims_["transfer"]["bindings"]}};
    files_["signature.json"] = signature_.dump(1) + "\n";
    return true;
  }

  // What stands there is replaced, so it must be what an earlier export wrote, or nothing.
  bool free_to_write() {
    std::error_code failed;
    to_ = fs::absolute(options_.to, failed).lexically_normal();
    if (!to_.has_filename()) to_ = to_.parent_path();  // "exported/"
    fs::create_directories(to_.parent_path(), failed);
    if (access(to_.parent_path().c_str(), W_OK) != 0) return cannot_write();
    if (!fs::exists(to_, failed) || (fs::is_directory(to_, failed) && fs::is_empty(to_, failed)))
      return true;
    for (const auto& variant : fs::directory_iterator(to_ / "build", failed))
      if (fs::exists(variant.path() / "kernel" / "signature.json")) return true;
    return refuse("export.to",
                  fmt::format("'{}' exists, and holds no export of an earlier run", options_.to),
                  "name another folder with --to; the whole folder is replaced");
  }

  bool cannot_write() {
    return refuse("export.to", fmt::format("cannot write '{}'", to_.string()),
                  "name a folder that can be written with --to");
  }

  std::string variant() const {
    utsname machine;
    uname(&machine);
    return fmt::format("torch-stable-abi29-{}-{}-linux",
                       cuda_of(claims_["tools"]["compiler"].get<std::string>()), machine.machine);
  }

  std::string metadata() const {
    const std::string cubin = sha256(files_.at("kernel.cubin"));
    return OrderedJson{
               {"id", fmt::format("_{}_cuda_{}", function_, cubin.substr(0, 12))},
               {"name", hub_name(function_)},
               {"version", options_.version},
               {"kernels-minver", "0.17.0"},
               {"license", "Apache-2.0"},
               {"python-depends", OrderedJson::array()},
               {"backend",
                {{"type", "cuda"}, {"archs", {capability(claims_["target"].get<std::string>())}}}}}
               .dump(1) +
           "\n";
  }

  std::string filled(const char* text) const {
    std::string arguments;
    for (const OrderedJson& a : signature_["arguments"])
      arguments += (arguments.empty() ? "" : ", ") + a.get<std::string>();
    return replaced(text, {{"name", hub_name(function_)},
                           {"function", function_},
                           {"target", claims_["target"]},
                           {"version", version()},
                           {"number", std::to_string(options_.version)},
                           {"verdict", claims_["verdict"]},
                           {"holds_for", claims_["holds_for"]},
                           {"form", claims_["spec"]["form"]},
                           {"arguments", arguments}});
  }

  bool write() {
    StagedFolder staged(to_);
    const fs::path at = staged.path() / "build" / variant();
    const fs::path package = home_->python() / "kernelwright" / "runtime";
    std::error_code failed;
    fs::create_directories(at / "kernel", failed);
    bool written = write_file(staged.path() / "README.md", filled(kReadMe)) &&
                   write_file(at / "__init__.py", filled(kInit)) &&
                   write_file(at / "metadata.json", metadata());
    for (const auto& [name, text] : files_) written &= write_file(at / "kernel" / name, text);
    std::set<std::string> modules;
    add_modules(package, "exported", modules);
    for (const std::string& module : modules)
      written &= fs::copy_file(package / (module + ".py"), at / (module + ".py"), failed);
    written &= fs::copy_file(*library_, at / library_->filename(), failed);
    if (written && staged.commit()) return true;
    return cannot_write();
  }

  const ExportOptions& options_;
  Diagnostics& diagnostics_;
  fs::path folder_, to_;
  std::optional<Home> home_;
  std::optional<fs::path> library_;
  Claims claims_;
  OrderedJson signature_;
  std::string function_;
  std::map<std::string, std::string> files_;  // of kernel/
};

}  // namespace

bool export_hf(const ExportOptions& options, Diagnostics& diagnostics) {
  return Exporter(options, diagnostics).run();
}

}  // namespace kw::driver
