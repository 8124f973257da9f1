#include "foreign/edits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "propose/schema.h"

namespace kw::foreign {
namespace {

using Json = nlohmann::json;
using propose::EditKind;
using propose::LineEdit;

std::string_view trimmed(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

bool is_word_at(std::string_view line, size_t at, size_t size) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return (at == 0 || !part(line[at - 1])) && (at + size == line.size() || !part(line[at + size]));
}

// Why a new line may not be: a control character, a directive (also spelled %:), assembly.
std::string forbidden(std::string_view line) {
  for (const unsigned char c : line)
    if (c < 0x20 && c != '\t') return "has a control character";
  const std::string_view text = trimmed(line);
  if (text.starts_with('#') && !text.starts_with("#pragma unroll")) return "is a directive";
  if (text.starts_with("%:")) return "is a directive";
  if (text.ends_with('\\')) return "goes on in the next line";
  for (const char* word : {"asm", "__asm__", "__asm", "_Pragma", "__pragma"})
    for (size_t at = line.find(word); at != line.npos; at = line.find(word, at + 1))
      if (is_word_at(line, at, std::string_view(word).size()))
        return fmt::format("has the word {}", word);
  return {};
}

bool allowed_at(const std::vector<Range>& allowed, const std::string& file, int first, int last) {
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const Range& r) { return r.holds(file, first) && r.holds(file, last); });
}

}  // namespace

Json edits_schema() {
  using namespace propose::schema;
  const Json edit =
      object({{"file", text("the file, as it is named above its lines")},
              {"op", choice({std::begin(propose::kEditNames), std::end(propose::kEditNames)},
                            "what is done")},
              {"first", number("the first line that it is about, as numbered")},
              {"last", number("the last line; the same one for an insertion")},
              {"expect", text("the first line as it stands, without its indentation")},
              {"text", list({{"type", "string"}}, "the new lines, each with its indentation")}});
  const Json argument =
      object({{"name", text("the argument's name in the program")},
              {"offset", number("of its field in the kernel's struct, in bytes")}});
  return object({{"why", text("what the edits do, in a sentence")},
                 {"edits", list(edit, "no line in two of them")},
                 {"arguments", list(argument,
                                    "those that the changed program has beyond the "
                                    "source's")},
                 {"parameter_bytes", number("of the kernel's struct after the change")}});
}

SourceEdits edits_of(const Json& answer) {
  SourceEdits out{answer["why"], {}, {}, answer["parameter_bytes"].get<int64_t>()};
  for (const Json& one : answer["edits"]) out.edits.push_back({one["file"], propose::edit_of(one)});
  for (const Json& one : answer["arguments"])
    out.arguments.push_back({one["name"], one["offset"].get<int64_t>()});
  return out;
}

std::map<std::string, std::vector<std::string>> apply(const Sources& sources,
                                                      const std::vector<FileEdit>& edits,
                                                      const std::vector<Range>& allowed,
                                                      Refusal& refusal) {
  const auto refuse = [&](const char* code, std::string sentence) {
    refusal = {code, std::move(sentence)};
    return std::map<std::string, std::vector<std::string>>{};
  };
  if (edits.empty()) return refuse("edit.text", "there is no edit, and the program changed");
  int lines = 0;
  for (const auto& [file, e] : edits) {
    const auto found = sources.lines.find(file);
    if (found == sources.lines.end())
      return refuse("edit.file",
                    fmt::format("'{}' is not one of the files that are shown", file.substr(0, 60)));
    if (e.first < 1 || e.last < e.first || e.last > static_cast<int>(found->second.size()))
      return refuse("edit.range", fmt::format("{}:{} is not a range of lines of {}, which has {}",
                                              e.first, e.last, file, found->second.size()));
    const bool inserts = e.kind == EditKind::insert_before || e.kind == EditKind::insert_after;
    if (inserts && e.first != e.last)
      return refuse("edit.range",
                    fmt::format("an insertion is about one line, not {} to {}", e.first, e.last));
    if ((e.kind == EditKind::remove) != e.text.empty())
      return refuse("edit.text",
                    fmt::format("the edit of {}:{} has {} new lines, and it is a {}", file, e.first,
                                e.text.size(), propose::kEditNames[static_cast<size_t>(e.kind)]));
    const std::string_view stands = trimmed(sources.line(file, e.first));
    if (trimmed(e.expect) != stands)
      return refuse("edit.expect", fmt::format("line {} of {} is `{}`, not `{}`", e.first, file,
                                               stands, trimmed(e.expect).substr(0, 100)));
    if (!allowed_at(allowed, file, e.first, e.last)) {
      std::string ranges;
      for (const Range& r : allowed) ranges += (ranges.empty() ? "" : ", ") + print(r);
      return refuse("edit.outside",
                    fmt::format("lines {} to {} of {} are outside of what the change touches: {}",
                                e.first, e.last, file, ranges));
    }
    for (const std::string& line : e.text)
      if (const std::string why = forbidden(line); !why.empty())
        return refuse("edit.directive", fmt::format("a new line {}: `{}`", why, line));
    for (const auto& [other_file, other] : edits)
      if (&other != &e && other_file == file && other.first <= e.last && e.first <= other.last)
        return refuse("edit.overlap", fmt::format("two edits are about line {} of {}",
                                                  std::max(e.first, other.first), file));
    lines += static_cast<int>(e.text.size()) + (inserts ? 0 : e.last - e.first + 1);
  }
  if (lines > kMostEditedLines)
    return refuse("edit.limit", fmt::format("the edits remove and add {} lines, at most {} are "
                                            "taken: change what the program's change asks for",
                                            lines, kMostEditedLines));
  std::vector<FileEdit> order = edits;
  std::sort(order.begin(), order.end(), [](const FileEdit& a, const FileEdit& b) {
    return a.edit.first > b.edit.first;  // from the end, so that numbers stay true
  });
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& [file, e] : order) {
    std::vector<std::string>& text = out.try_emplace(file, sources.lines.at(file)).first->second;
    const auto first = text.begin() + e.first - 1, end = text.begin() + e.last;
    if (e.kind == EditKind::insert_before)
      text.insert(first, e.text.begin(), e.text.end());
    else if (e.kind == EditKind::insert_after)
      text.insert(end, e.text.begin(), e.text.end());
    else
      text.insert(text.erase(first, end), e.text.begin(), e.text.end());
  }
  return out;
}

}  // namespace kw::foreign
