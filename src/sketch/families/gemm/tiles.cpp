#include "sketch/families/gemm/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace kw::sketch {
namespace {

constexpr std::array<int64_t, 2> kRows = {64, 128};
constexpr std::array<int64_t, 3> kColumns = {64, 128, 256};
constexpr int64_t kStep = 64, kWarpgroups = 3, kStages = 4;
constexpr int64_t kThreads = 128, kWarps = 4;  // of a warpgroup
constexpr int64_t kBesideTiles = 63;           // registers a thread for addresses and operands
constexpr int64_t kThreadRegisters = 255;      // at most, of one thread

int64_t rounded(int64_t bytes) { return (bytes + 1023) / 1024 * 1024; }

int64_t available(const Machine& m, int64_t warpgroups, int64_t blocks) {
  if (m.style == Style::engine)
    return blocks > 1 || warpgroups < 2 ? 0 : engine_registers(warpgroups).warpgroup;
  return std::min(kThreadRegisters, m.gpu.registers / (kThreads * warpgroups * blocks));
}

bool fits(const Machine& m, const ProductSizes& s, int64_t blocks) {
  const int64_t bytes = product_bytes(s);
  if (m.style == Style::engine && s.rows != 64) return false;  // the height of a wgmma
  const bool room =
      bytes <= m.block_bytes && blocks * (bytes + m.reserved_bytes) <=
                                    m.gpu.shared_bytes + (blocks == 1 ? m.reserved_bytes : 0);
  return room && product_registers(m, s) + kBesideTiles <= available(m, s.warpgroups, blocks);
}

// G3 to G6; a greater one is better.
using Rank = std::tuple<bool, double, bool, int64_t, bool, int64_t, int64_t, int64_t>;

Rank rank(const Machine& m, const ProductSizes& s, double rate) {
  const double blocks = double(product_resident(m, s)),
               warps = m.style == Style::engine ? 1 : kWarps;
  const int64_t height = s.rows * s.warpgroups;
  const double copied = double((height + s.columns) * s.step * 2);
  const double read =
      double(s.warpgroups) * (warps * double(s.columns) + double(s.rows)) * double(s.step) * 2;
  const double products = 2.0 * double(height * s.columns * s.step) / rate;
  const double memory = (read + copied) / m.gpu.shared_bytes_per_cycle;
  const double cache = copied / (m.gpu.l2_bytes_per_cycle / double(m.gpu.multiprocessors));
  double time = std::max({products, memory, cache});  // of one step, a CTA
  bool hidden = true;
  if (m.style == Style::synchronous)
    time = std::max(time, (std::max(products, memory) + cache + m.gpu.copy_latency +
                           2 * m.gpu.barrier_latency) /
                              blocks);
  else
    hidden = double(s.stages - 1) * blocks * products >= m.gpu.copy_latency;
  return {hidden,
          -time / products,  // where products take longest, exactly 1
          s.stages == 3,    s.stages, blocks * double(s.warpgroups) >= 2,
          -s.columns,       -s.rows,  -s.warpgroups};
}

void refuse(const Machine& m, const ProductSizes& s, Span span, Diagnostics& diagnostics) {
  const int64_t bytes = product_bytes(s), taken = product_registers(m, s);
  Diagnostic& d = diagnostics.error(
      "sketch.fit", std::move(span),
      bytes > m.block_bytes
          ? fmt::format("the tiles take {} bytes of shared memory, and {} has {} for a CTA", bytes,
                        m.gpu.name, m.block_bytes)
          : fmt::format("the accumulator and the operand take {} registers of each thread, and {} "
                        "leaves {} for them",
                        taken, m.gpu.name, available(m, s.warpgroups, 1) - kBesideTiles));
  for (const Line& l : product_lines(s))
    d.notes.push_back({fmt::format("{} = {}", l.what, l.bytes), {}});
  d.notes.push_back({fmt::format("together {} bytes; {} registers a thread ({} rows, {} columns)",
                                 bytes, taken, s.rows, s.columns),
                     {}});
  ProductSizes less = s;
  for (less.stages = s.stages - 1; less.stages >= 2; --less.stages)
    if (product_resident(m, less) > 0) {
      d.hint = fmt::format("STAGES = {} would fit: fewer steps in shared memory", less.stages);
      return;
    }
  less = s;
  for (less.columns = s.columns - 32; less.columns >= 32; less.columns -= 32)
    if (product_resident(m, less) > 0) {
      d.hint = fmt::format("BN = {} would fit: fewer columns a CTA", less.columns);
      return;
    }
  less = s;
  for (less.warpgroups = s.warpgroups - 1; less.warpgroups >= 1; --less.warpgroups)
    if (product_resident(m, less) > 0) {
      d.hint = fmt::format("WARPGROUPS = {} would fit: fewer rows a CTA", less.warpgroups);
      return;
    }
  less = s;
  less.rows = 64;
  d.hint = product_resident(m, less) > 0
               ? "ROWS = 64 would fit: fewer rows a warpgroup"
               : "no single change would fit: fewer stages, columns and rows, or another GPU";
}

}  // namespace

EngineRegisters engine_registers(int64_t warpgroups) {
  return warpgroups > 2 ? EngineRegisters{40, 152} : EngineRegisters{40, 232};
}

std::vector<Line> product_lines(const ProductSizes& s) {
  const auto line = [](const char* tile, int64_t count, int64_t rows, int64_t columns) {
    return Line{fmt::format("{}: {} of {} x {} x 2 bytes", tile, count, rows, columns),
                count * rounded(rows * columns * 2)};
  };
  return {line("left", s.warpgroups * s.stages, s.rows, s.step),
          line("right", s.stages, s.step, s.columns),
          line("output", s.warpgroups, s.rows, s.columns)};
}

int64_t product_bytes(const ProductSizes& sizes) {
  int64_t bytes = 0;
  for (const Line& l : product_lines(sizes)) bytes += l.bytes;
  return bytes;
}

int64_t product_registers(const Machine& m, const ProductSizes& s) {
  // Two elements in each, but for the accumulator.
  const int64_t operand = m.style == Style::engine ? 0 : s.rows * s.step / 2;
  const int64_t on_the_way =
      m.style == Style::synchronous
          ? (s.rows + s.columns / std::max<int64_t>(1, s.warpgroups)) * s.step / 2
          : 0;
  return (s.rows * s.columns + operand + on_the_way) / kThreads;
}

int64_t product_resident(const Machine& machine, const ProductSizes& sizes) {
  const int64_t wanted = std::max<int64_t>(1, 2 / std::max<int64_t>(1, sizes.warpgroups));
  int64_t blocks = 0;
  while (blocks < wanted && fits(machine, sizes, blocks + 1)) ++blocks;
  return blocks;
}

std::optional<ProductSizes> choose_product_tiles(const Machine& machine, const std::string& dtype,
                                                 Diagnostics& diagnostics) {
  const bool engine = machine.style == Style::engine, one = machine.style == Style::synchronous;
  const auto rate = timeline::product_rate(machine.gpu, engine, dtype, diagnostics);
  if (!rate) return std::nullopt;
  std::optional<ProductSizes> best;
  std::optional<Rank> of_best;
  for (const int64_t rows : kRows)
    for (const int64_t columns : kColumns)
      for (int64_t warpgroups = 1; warpgroups <= kWarpgroups; ++warpgroups)
        for (int64_t stages = one ? 1 : 2; stages <= (one ? 1 : kStages); ++stages) {
          const ProductSizes s{rows, warpgroups, columns, kStep, stages};
          if (product_resident(machine, s) < 1) continue;  // G1, G2
          const Rank r = rank(machine, s, *rate);
          if (of_best && !(r > *of_best)) continue;
          best = s;
          of_best = r;
        }
  if (!best) refuse(machine, {64, engine ? 2 : 1, 64, kStep, one ? 1 : 2}, {}, diagnostics);
  return best;
}

bool hold_product_tiles(const Machine& machine, const ProductSizes& sizes, Span span,
                        Diagnostics& diagnostics) {
  const bool engine = machine.style == Style::engine, one = machine.style == Style::synchronous;
  const auto refuse_number = [&](const char* name, int64_t value, const std::string& due) {
    diagnostics.error("sketch.tiles", span, fmt::format("{} is {}, and {}", name, value, due));
    return false;
  };
  if (sizes.rows != 64 && (engine || sizes.rows != 128))
    return refuse_number("ROWS", sizes.rows,
                         fmt::format("a warpgroup's products on {} have {} rows", machine.target,
                                     engine ? "64" : "64 or 128"));
  if (sizes.columns % 32 != 0 || sizes.columns < 32 || sizes.columns > 256)
    return refuse_number("BN", sizes.columns,
                         "a product has a multiple of 32 columns, at most 256");
  if (engine && sizes.columns > 192 && sizes.columns != 256)
    return refuse_number("BN", sizes.columns,
                         "an asynchronous product has at most 192 columns, or 256");
  if (sizes.step % 32 != 0 || sizes.step < 32 || sizes.step > 128)
    return refuse_number("BK", sizes.step, "a step of the sum has 32, 64, 96 or 128 terms");
  if (sizes.warpgroups < (engine ? 2 : 1) || sizes.warpgroups > kWarpgroups)
    return refuse_number("WARPGROUPS", sizes.warpgroups,
                         engine ? "2 or 3 of them share the registers beside one that loads"
                                : "from 1 to 3 of them share a CTA");
  if (one ? sizes.stages != 1 : sizes.stages < 2 || sizes.stages > kStages)
    return refuse_number("STAGES", sizes.stages,
                         one ? fmt::format("{} copies one step at a time", machine.target)
                             : "two to four steps are in shared memory");
  if (product_resident(machine, sizes) > 0) return true;
  refuse(machine, sizes, std::move(span), diagnostics);
  return false;
}

}  // namespace kw::sketch
