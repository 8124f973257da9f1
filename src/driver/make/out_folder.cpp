#include "driver/make/out_folder.h"

#include <fmt/format.h>

namespace kw::driver {
namespace fs = std::filesystem;

fs::path out_folder(const std::string& asked, const fs::path& otherwise) {
  const fs::path folder = asked.empty() ? otherwise : fs::path(asked);
  return folder.has_filename() ? folder : folder.parent_path();  // "out/x/"
}

bool may_replace(const fs::path& folder, const std::string& mark, const std::string& command,
                 Diagnostics& diagnostics) {
  std::error_code failed;
  if (!fs::exists(folder, failed) || fs::exists(folder / mark, failed) ||
      (fs::is_directory(folder, failed) && fs::is_empty(folder, failed)))
    return true;
  diagnostics
      .error("driver.out", {},
             fmt::format("'{}' exists, and holds no {} of an earlier run", folder.string(), mark))
      .hint = fmt::format("name another folder with --out; {} replaces the whole folder", command);
  return false;
}

}  // namespace kw::driver
