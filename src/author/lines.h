// An answer that is a text: a program, or a kernel in CuTe, as lines.
#pragma once
#include <optional>
#include <string>

#include "models/providers/provider.h"
#include "propose/answer.h"

namespace kw::author {

// {"why": "...", "lines": ["level sketch", ...]}
nlohmann::json lines_schema();

// The text, each line ended. Refuses as propose::read_json does, and with answer.lines for none,
// too many, too long ones, and ones with a control character.
std::optional<std::string> read_lines(const models::Answer& answer, propose::Refusal& refusal);

}  // namespace kw::author
