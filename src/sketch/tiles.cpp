#include "sketch/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace kw::sketch {
namespace {

constexpr std::array<int64_t, 2> kRows = {128, 64};
constexpr std::array<int64_t, 3> kKeys = {128, 64, 32};
constexpr int64_t kWarpgroups = 3, kWarps = 4;
constexpr double kWaitsShare = 1.0 / 20;

// T3 to T7; a greater one is better.
using Rank = std::tuple<bool, bool, double, int64_t, int64_t, int64_t>;

Rank rank(const Machine& m, const Work& w, const Sizes& s, double rate) {
  const int64_t blocks =
      std::min<int64_t>(resident(m, w, s), std::max<int64_t>(1, 2 / s.warpgroups));
  const double products = 2.0 * double(s.rows * s.warpgroups * s.keys * w.product_columns) / rate;
  const double keys = double(s.keys * w.product_columns * 2);  // bytes of the keys' tiles
  const double left = double(s.rows * w.left_columns * 2);
  const double memory =
      (double(s.warpgroups) * (double(kWarps) * keys + left) + keys) / m.gpu.shared_bytes_per_cycle;
  const double waits = 2 * m.gpu.barrier_latency + m.gpu.product_latency;
  const double time = std::max(products, memory) / double(s.rows * s.warpgroups * s.keys);
  return {blocks * s.warpgroups >= 2,
          double(blocks) * products * kWaitsShare >= waits,
          -time,
          blocks,
          s.keys,
          s.rows};
}

}  // namespace

bool some_tiles_fit(const Machine& machine, const Work& work) {
  for (const int64_t rows : kRows)
    for (const int64_t keys : kKeys)
      for (int64_t warpgroups = 1; warpgroups <= kWarpgroups; ++warpgroups)
        if (resident(machine, work, {rows, keys, warpgroups}) > 0) return true;
  return false;
}

std::optional<Sizes> choose_tiles(const Machine& machine, const Work& work,
                                  const std::string& dtype, Diagnostics& diagnostics) {
  const auto rate =
      timeline::product_rate(machine.gpu, machine.style == Style::engine, dtype, diagnostics);
  if (!rate) return std::nullopt;
  std::optional<Sizes> best;
  std::optional<Rank> of_best;
  for (const int64_t rows : kRows)
    for (const int64_t keys : kKeys)
      for (int64_t warpgroups = 1; warpgroups <= kWarpgroups; ++warpgroups) {
        const Sizes s{rows, keys, warpgroups};
        if (resident(machine, work, s) < 1) continue;  // T1, T2
        const Rank r = rank(machine, work, s, *rate);
        if (of_best && !(r > *of_best)) continue;
        best = s;
        of_best = r;
      }
  if (!best)
    refuse(machine, work, {64, 32, machine.style == Style::engine ? 2 : 1}, {}, diagnostics);
  return best;
}

bool hold_tiles(const Machine& machine, const Work& work, const Sizes& sizes,
                Diagnostics& diagnostics) {
  const bool engine = machine.style == Style::engine;
  const auto refuse_number = [&](const char* name, int64_t value, const std::string& due) {
    diagnostics.error("sketch.tiles", {}, fmt::format("{} is {}, and {}", name, value, due));
    return false;
  };
  if (sizes.rows != 64 && (engine || sizes.rows != 128))
    return refuse_number("ROWS", sizes.rows,
                         fmt::format("a warpgroup's products on {} have {} rows", machine.target,
                                     engine ? "64" : "64 or 128"));
  if (sizes.keys % 16 != 0 || sizes.keys < 16 || sizes.keys > 256)
    return refuse_number("BN", sizes.keys, "the products take a multiple of 16 keys, at most 256");
  if (engine ? sizes.warpgroups != 2 && sizes.warpgroups != 3
             : sizes.warpgroups < 1 || sizes.warpgroups > kWarpgroups)
    return refuse_number("WARPGROUPS", sizes.warpgroups,
                         engine ? "2 or 3 of them share the registers beside one that loads"
                                : "from 1 to 3 of them share a CTA");
  if (resident(machine, work, sizes) > 0) return true;
  refuse(machine, work, sizes, {}, diagnostics);
  return false;
}

}  // namespace kw::sketch
