#include "lift/closed.h"

#include <fmt/format.h>

#include <filesystem>
#include <mutex>
#include <set>

#include "support/includes.h"

namespace kw::lift {
namespace fs = std::filesystem;
namespace {

bool closed(const std::string& name, const SourcePtr& source, Diagnostics& diagnostics) {
  const auto asked = asks_for_a_file(name, source->text);
  if (!asked) return true;
  const uint32_t at = static_cast<uint32_t>(asked->at);
  const uint32_t end = static_cast<uint32_t>(source->text.size());
  diagnostics.error("lift.include", Span{source, at, std::min(at + 1, end)}, asked->message).hint =
      "write what the kernel needs into the kernel itself";
  return false;
}

bool leads_elsewhere(const fs::path& file, const std::string& name, Diagnostics& diagnostics) {
  std::error_code failed;
  const fs::path real = fs::canonical(file, failed);
  if (!failed && fs::is_regular_file(real) && ("/" + real.string()).ends_with("/" + name))
    return false;
  diagnostics.error("lift.include", {},
                    fmt::format("'{}' is no file of a vocabulary but leads to '{}'", file.string(),
                                failed ? failed.message() : real.string()));
  return true;
}

bool vocabulary_is_closed(const fs::path& include, Diagnostics& diagnostics) {
  std::error_code failed;
  for (fs::recursive_directory_iterator entry(include / "kw", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (fs::is_directory(entry->path(), failed) && !entry->is_symlink(failed)) continue;
    const std::string name = entry->path().lexically_relative(include).string();
    if (leads_elsewhere(entry->path(), name, diagnostics)) return false;
    const SourcePtr text = read_source(entry->path().string());
    if (text && !closed(name, text, diagnostics)) return false;
  }
  return true;
}

}  // namespace

bool has_no_macros(const SourcePtr& kernel, Diagnostics& diagnostics) {
  const auto macro = has_macros(kernel->text);
  if (!macro) return true;
  const size_t end = kernel->text.find_first_of(" \t\n(", macro->at);
  const Span word{kernel, static_cast<uint32_t>(macro->at),
                  static_cast<uint32_t>(std::min(end, kernel->text.size()))};
  diagnostics.error("lift.unrecognised", word, macro->message).hint =
      "kernels have no macros: a constant is `constexpr int`";
  return false;
}

bool reads_only_the_vocabulary(const SourcePtr& kernel, const std::string& include,
                               Diagnostics& diagnostics) {
  if (!closed("", kernel, diagnostics)) return false;
  if (!has_no_macros(kernel, diagnostics)) return false;
  static std::mutex mutex;
  static std::set<std::string> known;
  const std::lock_guard lock(mutex);
  if (known.contains(include)) return true;
  if (!vocabulary_is_closed(include, diagnostics)) return false;
  known.insert(include);
  return true;
}

}  // namespace kw::lift
