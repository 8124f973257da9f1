// A model in the rules' place: the prompts of this installation, and what its attempts come to.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/environment/home.h"
#include "propose/propose.h"

namespace kw::driver {

// In the folder that make wrote: every attempt, with its answer and what refused it.
inline constexpr const char* kAttempts = "attempts.json";

// Texts of prompts/, each into the string beside its file's name. Reports driver.prompts with the
// first file that cannot be read.
bool read_prompts(const Home& home,
                  const std::vector<std::pair<std::string*, const char*>>& prompts,
                  Diagnostics& diagnostics);

// prompts/transfer.*.md.
std::optional<propose::Templates> find_templates(const Home& home, Diagnostics& diagnostics);

// The attempts as JSON text; bytes of answers that are no UTF-8 are replaced.
std::string attempts_text(const propose::Proposed& proposed);

// Of a run without an accepted program: 2 where nobody can be asked until the user changes
// something, else 3.
Exit exit_for(const propose::Proposed& proposed);

}  // namespace kw::driver
