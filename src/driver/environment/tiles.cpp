#include "driver/environment/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using Rows = std::vector<transfer::Tiles>;

bool add(const SourcePtr& source, bool users, Rows& rows, Diagnostics& diagnostics) {
  const auto database = transfer::read_tiles(source, diagnostics);
  if (!database) return false;
  for (transfer::Tiles row : database->rows) {
    row.users = users;
    rows.push_back(std::move(row));
  }
  return true;
}

bool add_users(const std::string& path, const char* named_by, Rows& rows,
               Diagnostics& diagnostics) {
  if (const SourcePtr source = read_source(path)) return add(source, true, rows, diagnostics);
  diagnostics
      .error("tiles.read", {}, fmt::format("cannot read '{}': {}", path, std::strerror(errno)))
      .hint = fmt::format("{} names it; docs/tuning.md has the form of a tile database", named_by);
  return false;
}

// kernels/*/tiles.json, by the folders' names. A folder need not have one.
std::vector<fs::path> shipped(const Home& home) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const fs::directory_entry& folder : fs::directory_iterator(home.kernels(), failed))
    if (fs::exists(folder.path() / "tiles.json")) files.push_back(folder.path() / "tiles.json");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::optional<Rows> find_tiles(const Home& home, const std::string& file,
                               Diagnostics& diagnostics) {
  Rows rows;
  bool good = file.empty() || add_users(file, "--tiles", rows, diagnostics);
  const char* set = std::getenv("KERNELWRIGHT_TILES");
  if (set && *set) good = add_users(set, "KERNELWRIGHT_TILES", rows, diagnostics) && good;
  for (const fs::path& path : shipped(home)) {
    const std::string name = fs::relative(path, home.root).string();
    good =
        add(make_source(name, read_source(path.string())->text), false, rows, diagnostics) && good;
  }
  if (!good) return std::nullopt;
  return rows;
}

std::optional<Rows> tiles_of_text(const Home& home, const std::string& text,
                                  Diagnostics& diagnostics) {
  Rows rows;
  const fs::path path = (home.root / text).replace_extension(".tiles.json");
  if (!fs::exists(path)) return rows;
  const std::string name = fs::relative(path, home.root).string();
  if (!add(make_source(name, read_source(path.string())->text), false, rows, diagnostics))
    return std::nullopt;
  return rows;
}

}  // namespace kw::driver
