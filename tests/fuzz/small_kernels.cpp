#include "small_kernels.h"

#include <fmt/format.h>

#include <stdexcept>

#include "in_clone.h"

namespace kw::fuzz {
namespace {

transfer::Target small_tiles(const char* target, const std::string& constants) {
  std::string rows;
  for (const auto& [columns, values] : {std::pair(16, 16), {96, 32}})
    rows += fmt::format(R"({}{{"targets": ["{}"], "D": {}, "V": {}, "keys": "any",
                              "constants": {{{}}}, "why": "small"}})",
                        rows.empty() ? "" : ", ", target, columns, values, constants);
  const std::string text = fmt::format(R"({{"about": "for tests", "rows": [{}]}})", rows);
  Diagnostics d;
  auto read = transfer::read_tiles(make_source("tiles.json", text), d);
  if (!read) throw std::runtime_error(render(d));
  return {target, read->rows, 0};
}

tl::Program corpus(const char* name) {
  Diagnostics d;
  auto p = tl::parse(read_source(in_clone(fmt::format("/tests/corpus/{}.tl", name))), d);
  if (!p) throw std::runtime_error(render(d));
  return std::move(*p);
}

}  // namespace

std::vector<Kernel> small_kernels() {
  const tl::Program hopper = corpus("sm90_attention_fwd"), ampere = corpus("sm80_attention_fwd");
  const std::string loader =
      R"(, "Q_SLOTS": 2, "STAGES": 2, "Q_IN_REGISTERS": true, "PING_PONG": false)";
  return {{"hopper", hopper, small_tiles("sm_90a", R"("BM": 64, "BN": 16, "CTAS": 1)" + loader)},
          {"cluster", hopper, small_tiles("sm_90a", R"("BM": 128, "BN": 32, "CTAS": 2)" + loader)},
          {"ampere", ampere, small_tiles("sm_80", R"("BN": 16, "ROWS": 64, "WARPGROUPS": 1)")}};
}

Kernel backward_kernel() { return {"backward", corpus("sm90_attention_bwd"), {"sm_90a", {}, 0}}; }

bool breaks_a_law(const Diagnostics& d) {
  for (const Diagnostic& x : d.all()) {
    const bool copy = x.code == "tile.C1" || x.code == "ring.C1";
    const bool product = x.code == "wgmma.C4" || x.code == "wgmma_add.C4";
    if (x.severity == Severity::error && !copy && !product) return true;
  }
  return false;
}

}  // namespace kw::fuzz
