// NVRTC finds a header in memory only by the exact text between the quotes; it knows no folders.
// So that headers may include each other as files do ("../tile/tiles.cuh"), each such line is
// rewritten to the name under which the header is given. Lines keep their numbers.
#include <filesystem>
#include <set>

#include "compile/nvrtc.h"

namespace kw::runtime {
namespace {

// The quoted part of an #include line, as a view into it; empty for any other line.
std::string_view included(std::string_view line) {
  const size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos || line.substr(start, 8) != "#include") return {};
  const size_t open = line.find('"');
  const size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  return line.substr(open + 1, close - open - 1);
}

}  // namespace

std::string with_full_includes(const std::string& name, const std::string& text,
                               const std::vector<Header>& headers) {
  std::set<std::string> known;
  for (const Header& header : headers) known.insert(header.name);
  const std::filesystem::path folder = std::filesystem::path(name).parent_path();
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const std::string_view quoted = included(line);
    const std::string full = (folder / quoted).lexically_normal().string();
    if (!quoted.empty() && known.contains(full)) {
      const size_t offset = quoted.data() - line.data();
      out.append(line.substr(0, offset)).append(full).append(line.substr(offset + quoted.size()));
    } else {
      out.append(line);
    }
    at = end;
  }
  return out;
}

}  // namespace kw::runtime
