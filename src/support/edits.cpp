#include "support/edits.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "support/lines.h"

namespace kw {
namespace {

// Whether `from` begins at line `at`; later lines keep their own indentation relative to the first.
bool begins_at(const std::vector<std::string>& lines, size_t at,
               const std::vector<std::string>& from, size_t& indent) {
  const size_t first = lines[at].find_first_not_of(' ');
  indent = first == std::string::npos ? 0 : first;
  for (size_t k = 0; k < from.size(); ++k)
    if (lines[at + k] != std::string(indent, ' ') + from[k]) return false;
  return true;
}

bool apply_hunk(const Edit::Hunk& hunk, std::vector<std::string>& lines) {
  int seen = 0;
  for (size_t at = 0; at + hunk.from.size() <= lines.size(); ++at) {
    size_t indent = 0;
    if (!begins_at(lines, at, hunk.from, indent) || ++seen != hunk.occurrence) continue;
    lines.erase(lines.begin() + at, lines.begin() + at + hunk.from.size());
    std::vector<std::string> to;
    for (const std::string& line : hunk.to) to.push_back(std::string(indent, ' ') + line);
    lines.insert(lines.begin() + at, to.begin(), to.end());
    return true;
  }
  return false;
}

}  // namespace

std::optional<Edit> read_edit(const std::string& path, Diagnostics& diagnostics) {
  const SourcePtr source = read_source(path);
  if (!source) {
    diagnostics.error("edit.file", {}, fmt::format("cannot read {}: {}", path, strerror(errno)));
    return std::nullopt;
  }
  Edit edit;
  edit.name = std::filesystem::path(path).stem().string();
  int occurrence = 1;
  bool in_from = false;
  for (const std::string& line : lines_of(source->text)) {
    if (line.empty()) continue;
    if (line[0] == '#') {
      if (edit.about.empty() && line.size() > 2) edit.about = line.substr(2);
    } else if (line[0] == '@') {
      occurrence = std::atoi(line.c_str() + 1);
      in_from = false;
    } else if (line[0] == '-') {
      if (!in_from) edit.hunks.push_back({occurrence, {}, {}});
      in_from = true;
      occurrence = 1;
      edit.hunks.back().from.push_back(line.size() > 2 ? line.substr(2) : "");
    } else if (line[0] == '+' && !edit.hunks.empty()) {
      in_from = false;
      edit.hunks.back().to.push_back(line.size() > 2 ? line.substr(2) : "");
    } else if (const size_t colon = line.find(": "); colon != std::string::npos) {
      edit.head[line.substr(0, colon)] = line.substr(colon + 2);
    } else {
      diagnostics.error(
          "edit.file", {},
          fmt::format("{}: '{}' is not one of #, -, +, @ and KEY: VALUE", path, line));
      return std::nullopt;
    }
  }
  return edit;
}

std::optional<std::string> apply_edit(const Edit& edit, const std::string& text,
                                      Diagnostics& diagnostics) {
  std::vector<std::string> lines = lines_of(text);
  for (const Edit::Hunk& hunk : edit.hunks)
    if (!apply_hunk(hunk, lines)) {
      diagnostics.error("edit.line", {},
                        fmt::format("{}: the text has no line '{}' (occurrence {})", edit.name,
                                    hunk.from.at(0), hunk.occurrence));
      return std::nullopt;
    }
  return joined(lines);
}

}  // namespace kw
