#include "author/lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "propose/schema.h"

namespace kw::author {

nlohmann::json lines_schema() {
  using namespace propose::schema;
  return object(
      {{"why", text("what the program does, in a sentence")},
       {"lines", list({{"type", "string"}}, "the text, line by line, each with its indentation")}});
}

std::optional<std::string> read_lines(const models::Answer& answer, propose::Refusal& refusal) {
  static const nlohmann::json schema = lines_schema();
  const auto json = propose::read_json(answer, schema, refusal);
  if (!json) return std::nullopt;
  const auto refuse = [&](std::string sentence) {
    refusal = {"answer.lines", std::move(sentence)};
    return std::nullopt;
  };
  const nlohmann::json& lines = (*json)["lines"];
  if (lines.empty()) return refuse("the answer has no lines: the whole text is due");
  if (lines.size() > propose::kMostLines)
    return refuse(fmt::format("the answer has {} lines, and at most {} are read", lines.size(),
                              propose::kMostLines));
  std::string text;
  for (size_t n = 0; n < lines.size(); ++n) {
    const std::string line = lines[n];
    if (line.size() > propose::kMostColumns)
      return refuse(fmt::format("line {} has {} bytes, and at most {} are read", n + 1, line.size(),
                                propose::kMostColumns));
    if (std::ranges::any_of(line, [](unsigned char c) { return c < ' ' || c == 127; }))
      return refuse(fmt::format("line {} has a control character: one line is one entry", n + 1));
    text += line + "\n";
  }
  return text;
}

}  // namespace kw::author
