#include "support/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kw {
namespace {

const char* word(Severity s) {
  switch (s) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "error";
}

// The blamed line with carets under the blamed columns. A span over several lines is underlined to
// the end of its first one.
std::string snippet(const Span& span) {
  if (!span.known()) return {};
  const Position at = span.start();
  const std::string_view line = line_of(*span.source, at.line);
  const int from = at.column - 1;
  const int width = std::clamp<int>(span.end - span.begin, 1, std::max<int>(1, line.size() - from));
  std::string pad;
  for (int i = 0; i < from && i < static_cast<int>(line.size()); ++i)
    pad += line[i] == '\t' ? '\t' : ' ';
  return fmt::format("{:>6} | {}\n       | {}^{}\n", at.line, line, pad,
                     std::string(width - 1, '~'));
}

nlohmann::json place(const Span& span) {
  if (!span.known()) return nullptr;
  const Position at = span.start();
  return {{"file", span.source->name}, {"line", at.line}, {"column", at.column}};
}

}  // namespace

Diagnostic& Diagnostics::error(std::string code, Span span, std::string message) {
  all_.push_back({Severity::error, std::move(code), std::move(span), std::move(message), {}, {}});
  return all_.back();
}

Diagnostic& Diagnostics::warning(std::string code, Span span, std::string message) {
  all_.push_back({Severity::warning, std::move(code), std::move(span), std::move(message), {}, {}});
  return all_.back();
}

bool Diagnostics::has_errors() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::string text_of(const Note& note) {
  return note.span.known() ? fmt::format("{} ({})", note.message, note.span.place()) : note.message;
}

std::string render(const Diagnostic& d) {
  std::string out = d.span.known() ? d.span.place() + ": " : "";
  out += word(d.severity);
  if (!d.code.empty()) out += "[" + d.code + "]";
  out += ": " + d.message + "\n" + snippet(d.span);
  for (const Note& n : d.notes)
    out += "  note: " + n.message + (n.span.known() ? " (" + n.span.place() + ")" : "") + "\n";
  if (!d.hint.empty()) out += "  help: " + d.hint + "\n";
  return out;
}

std::string render(const Diagnostics& d) {
  std::string out;
  for (const Diagnostic& one : d.all()) out += render(one);
  return out;
}

nlohmann::json to_json(const Diagnostic& d) {
  nlohmann::json notes = nlohmann::json::array();
  for (const Note& n : d.notes) notes.push_back({{"message", n.message}, {"place", place(n.span)}});
  return {{"severity", word(d.severity)}, {"code", d.code}, {"place", place(d.span)},
          {"message", d.message},         {"notes", notes}, {"hint", d.hint}};
}

nlohmann::json to_json(const Diagnostics& d) {
  nlohmann::json out = nlohmann::json::array();
  for (const Diagnostic& one : d.all()) out.push_back(to_json(one));
  return out;
}

}  // namespace kw
