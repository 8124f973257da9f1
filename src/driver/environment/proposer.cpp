#include "driver/environment/proposer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/providers/provider_error.h"

namespace kw::driver {

bool read_prompts(const Home& home,
                  const std::vector<std::pair<std::string*, const char*>>& prompts,
                  Diagnostics& diagnostics) {
  for (const auto& [text, name] : prompts) {
    const std::string path = (home.root / "prompts" / name).string();
    const SourcePtr file = read_source(path);
    if (!file) {
      diagnostics.error("driver.prompts", {}, fmt::format("cannot read the prompt '{}'", path))
          .hint = "it comes with kernelwright: install it again, or set KERNELWRIGHT_HOME";
      return false;
    }
    *text = file->text;
  }
  return true;
}

std::optional<propose::Templates> find_templates(const Home& home, Diagnostics& diagnostics) {
  propose::Templates out;
  const bool found = read_prompts(home,
                                  {{&out.system, "transfer.system.md"},
                                   {&out.user, "transfer.user.md"},
                                   {&out.attention, "transfer.letters.attention.md"},
                                   {&out.product, "transfer.letters.product.md"},
                                   {&out.rows, "transfer.letters.rms_norm.md"}},
                                  diagnostics);
  return found ? std::optional(out) : std::nullopt;
}

std::string attempts_text(const propose::Proposed& proposed) {
  return propose::to_json(proposed).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

Exit exit_for(const propose::Proposed& proposed) {
  return proposed.problem ? models::exit_of(proposed.problem->kind) : Exit::inconclusive;
}

}  // namespace kw::driver
