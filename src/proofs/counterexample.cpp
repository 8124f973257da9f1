#include "proofs/counterexample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kw::proofs {

void describe(Obligation& o, const std::vector<std::string>& shown,
              const std::vector<std::string>& values, const Sides& sides) {
  std::vector<std::string> at, said;
  for (size_t n = 0; n < shown.size() && n < values.size(); ++n) {
    if (shown[n].rfind("side.", 0) == 0) {
      const Side& side = sides[std::stoul(shown[n].substr(5))];
      said.push_back(fmt::format("{}: {}", side.what, values[n]));
      continue;
    }
    const std::string name = shown[n].rfind("block.", 0) == 0 ? shown[n].substr(6) : shown[n];
    o.at[name] = std::stoll(values[n]);
    at.push_back(fmt::format("{} = {}", name, values[n]));
  }
  o.message =
      fmt::format("{}{}{}", fmt::join(at, ", "), said.empty() ? "" : ": ", fmt::join(said, ", "));
}

}  // namespace kw::proofs
