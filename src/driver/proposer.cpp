#include "driver/proposer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "driver/tools.h"

namespace kw::driver {

std::optional<propose::Templates> find_templates(const Home& home, Diagnostics& diagnostics) {
  propose::Templates out;
  for (const auto& [text, name] :
       {std::pair{&out.system, "transfer.system.md"}, std::pair{&out.user, "transfer.user.md"}}) {
    const std::string path = (home.root / "prompts" / name).string();
    const SourcePtr file = read_source(path);
    if (!file) {
      diagnostics.error("driver.prompts", {}, fmt::format("cannot read the prompt '{}'", path))
          .hint = "it comes with kernelwright: install it again, or set KERNELWRIGHT_HOME";
      return std::nullopt;
    }
    *text = file->text;
  }
  return out;
}

std::string attempts_text(const propose::Proposed& proposed) {
  return propose::to_json(proposed).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

Exit exit_for(const propose::Proposed& proposed) {
  using Kind = models::ProviderError::Kind;
  const bool users = proposed.problem && (proposed.problem->kind == Kind::bad_request ||
                                          proposed.problem->kind == Kind::refused_key);
  return users ? Exit::bad_input : Exit::inconclusive;
}

}  // namespace kw::driver
