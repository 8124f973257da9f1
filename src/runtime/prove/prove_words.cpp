#include "runtime/prove/prove_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kw::runtime {

bool holds_words(const ProveCase& asked, const std::string& output) {
  return std::any_of(asked.goldens.begin(), asked.goldens.end(),
                     [&](const Golden& g) { return g.mask && g.output == output; });
}

nlohmann::json compare_words(const Golden& golden, const Output& output, Diagnostics& findings) {
  const Strided& layout = output.layout;
  const int64_t rows = golden.rows.shape[0], dims = golden.rows.shape[1];
  const bool whole_rows = dims < static_cast<int64_t>(layout.shape.size());
  const int64_t columns = whole_rows ? layout.shape.back() : 1;
  const size_t size = kw::bytes(layout.dtype);
  int64_t differ = 0;
  std::vector<int64_t> first;
  std::string words;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      int64_t at = c * layout.strides.back() * whole_rows;
      for (int64_t d = 0; d < dims; ++d)
        at += static_cast<int64_t>(golden.rows.values[r * dims + d]) * layout.strides[d];
      uint32_t got = 0;
      memcpy(&got, output.bytes.data() + at * size, std::min(size, sizeof got));
      const auto want = static_cast<uint32_t>(golden.values.values[r * columns + c]);
      if (((got ^ want) & golden.mask) == 0 || differ++ > 0) continue;
      for (int64_t d = 0; d < dims; ++d)
        first.push_back(static_cast<int64_t>(golden.rows.values[r * dims + d]));
      if (whole_rows) first.push_back(c);
      words = fmt::format("{:#x}, must be {:#x}", got & golden.mask, want & golden.mask);
    }
  if (differ)
    findings.error("prove.words", {},
                   fmt::format("{}: {} of {} words differ, the first at [{}]: {}", golden.output,
                               differ, rows * columns, fmt::join(first, ", "), words));
  return {{"output", golden.output},
          {"rows", rows},
          {"worst_ratio", differ ? nlohmann::json() : nlohmann::json(0.0)},
          {"worst_error", static_cast<double>(differ)},
          {"accepted", 0.0},
          {"worst_index", first}};
}

}  // namespace kw::runtime
