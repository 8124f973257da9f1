#include "sketch/budget.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/targets.h"

namespace kw::sketch {
namespace {

constexpr int64_t kThreads = 128;          // of a warpgroup
constexpr int64_t kBesideTiles = 63;       // registers a thread for addresses and operands
constexpr int64_t kStepPlaces = 16;        // and for those of two operands' steps
constexpr int64_t kThreadRegisters = 255;  // at most, of one thread

int64_t rounded(int64_t bytes) { return (bytes + 1023) / 1024 * 1024; }

// Registers that each thread has where `blocks` CTAs share a multiprocessor, in eights.
// Beside a warpgroup that only loads, two have 240 and three 160 (setmaxnreg).
int64_t available(const Machine& m, int64_t warpgroups, int64_t blocks) {
  if (m.style == Style::engine)
    return blocks > 1 ? 0 : warpgroups == 2 ? 240 : warpgroups == 3 ? 160 : 0;
  return std::min(kThreadRegisters, m.gpu.registers / (kThreads * warpgroups * blocks));
}

// Of tiles, a thread. Products in flight keep their left side's registers too: the exponentials as
// an operand.
int64_t held(const Machine& m, const Work& w, const Sizes& s) {
  return registers(w, s) + (m.style == Style::engine ? s.rows * s.keys / 2 / kThreads : 0);
}

bool fits(const Machine& m, const Work& w, const Sizes& s, int64_t blocks) {
  const int64_t bytes = shared_bytes(w, s);
  if (m.style == Style::engine && s.rows != 64) return false;  // the height of a wgmma
  const bool room =
      bytes <= m.block_bytes && blocks * (bytes + m.reserved_bytes) <=
                                    m.gpu.shared_bytes + (blocks == 1 ? m.reserved_bytes : 0);
  return room && held(m, w, s) + w.places + kBesideTiles <= available(m, s.warpgroups, blocks);
}

}  // namespace

std::optional<Machine> machine(const timeline::Gpu& gpu, const std::string& target,
                               Diagnostics& diagnostics) {
  const std::string& name = target.empty() ? gpu.targets.at(0) : target;
  if (std::find(gpu.targets.begin(), gpu.targets.end(), name) == gpu.targets.end()) {
    diagnostics.error("sketch.target", {},
                      fmt::format("{} runs {}, and {} is asked for", gpu.name,
                                  fmt::join(gpu.targets, ", "), name));
    return std::nullopt;
  }
  const TargetLimits* limits = find_target(name);
  if (!limits) {
    diagnostics.error("sketch.target", {},
                      fmt::format("{} runs {}, for which nothing is compiled; "
                                  "the targets are {}",
                                  gpu.name, name, target_names()));
    return std::nullopt;
  }
  Machine m{gpu, name, Style::synchronous, limits->block_shared_bytes, limits->reserved_bytes};
  if (limits->ampere) m.style = Style::copies;
  if (limits->hopper) m.style = Style::engine;
  return m;
}

Work work_of(const tl::Program& program, const Placed& placed, const Machine& machine) {
  const auto values = parameters(program);
  const auto value = [&](const std::string& name) {
    const auto at = values.find(name);
    return at == values.end() ? int64_t{0} : at->second;
  };
  Work w;
  for (const Tile& t : placed.tiles) {
    if (t.space == Space::shared) {
      int64_t slots = 1;  // S1
      if (t.of_keys && machine.style == Style::copies) slots = t.first_read == 0 ? 2 : 1;
      if (t.of_keys && machine.style == Style::engine) slots = 2;
      if (!placed.steps.empty() && t.name == placed.left && machine.style == Style::copies)
        slots = 2;
      w.shared.push_back({t.name, t.of_keys, value(t.columns), slots});
    }
    if (t.space != Space::accumulator) continue;
    if (t.columns == "BN")
      ++w.key_accumulators;
    else
      w.columns += value(t.columns);
  }
  if (!placed.steps.empty()) w.places = kStepPlaces;
  for (const std::string& columns : placed.products) w.product_columns += value(columns);
  if (const Tile* left = placed.find(placed.left))
    w.left_columns = value(placed.steps.empty() ? left->columns : placed.steps);
  return w;
}

std::vector<Line> lines(const Work& work, const Sizes& sizes) {
  std::vector<Line> all;
  for (const Work::Shared& s : work.shared) {
    const int64_t count = s.of_keys ? s.slots : sizes.warpgroups * s.slots,
                  rows = s.of_keys ? sizes.keys : sizes.rows;
    all.push_back({fmt::format("{}: {} of {} x {} x 2 bytes", s.name, count, rows, s.columns),
                   count * rounded(rows * s.columns * 2)});
  }
  return all;
}

int64_t shared_bytes(const Work& work, const Sizes& sizes) {
  int64_t bytes = 0;
  for (const Line& l : lines(work, sizes)) bytes += l.bytes;
  return bytes;
}

int64_t registers(const Work& work, const Sizes& sizes) {
  return sizes.rows * (work.key_accumulators * sizes.keys + work.columns) / kThreads;
}

int64_t resident(const Machine& machine, const Work& work, const Sizes& sizes) {
  int64_t blocks = 0;
  while (blocks < 16 && fits(machine, work, sizes, blocks + 1)) ++blocks;
  return blocks;
}

namespace {

constexpr int64_t kProduct = 16;  // columns of one tensor core instruction's left side
constexpr const char* kAnother =
    "no number of keys, rows, stages or columns would fit: another GPU";

// Where no other number helps: how much narrower all tiles would have to be, in steps of a product.
std::string fewer_columns(const Machine& machine, const Work& work) {
  const Sizes smallest{64, 16, machine.style == Style::engine ? 2 : 1};
  for (int64_t times = 2; times <= 1024; times *= 2) {
    Work narrow = work;
    narrow.columns /= times;
    std::vector<std::string> tiles;
    for (Work::Shared& s : narrow.shared) {
      s.columns = s.columns / times / kProduct * kProduct;
      if (s.columns == 0) return kAnother;
      tiles.push_back(fmt::format("{} {}", s.name, s.columns));
    }
    if (resident(machine, narrow, smallest) > 0)
      return fmt::format(
          "no number of keys, rows or stages would fit; {} times fewer columns would: {}", times,
          fmt::join(tiles, ", "));
  }
  return kAnother;
}

}  // namespace

void refuse(const Machine& machine, const Work& work, const Sizes& sizes, Span span,
            Diagnostics& diagnostics) {
  const int64_t bytes = shared_bytes(work, sizes), taken = held(machine, work, sizes);
  const int64_t room = available(machine, sizes.warpgroups, 1) - kBesideTiles - work.places;
  const bool memory = bytes > machine.block_bytes;
  Diagnostic& d = diagnostics.error(
      "sketch.fit", std::move(span),
      memory ? fmt::format("the tiles take {} bytes of shared memory, and {} has {} for a CTA",
                           bytes, machine.gpu.name, machine.block_bytes)
             : fmt::format(
                   "the {} take {} registers of each thread, and {} leaves {} for them",
                   machine.style == Style::engine ? "accumulators and the operand" : "accumulators",
                   taken, machine.gpu.name, room));
  for (const Line& l : lines(work, sizes))
    d.notes.push_back({fmt::format("{} = {}", l.what, l.bytes), {}});
  d.notes.push_back({fmt::format("together {} bytes; accumulators: {} registers a thread, of {} "
                                 "({} rows, {} keys)",
                                 bytes, registers(work, sizes), room, sizes.rows, sizes.keys),
                     {}});
  // The smallest change first.
  for (int64_t keys = sizes.keys / 2; keys >= 16; keys /= 2)
    if (resident(machine, work, {sizes.rows, keys, sizes.warpgroups}) > 0) {
      d.hint = fmt::format("BN = {} would fit: fewer keys a block", keys);
      return;
    }
  for (int64_t warpgroups = sizes.warpgroups - 1; warpgroups >= 1; --warpgroups)
    if (resident(machine, work, {sizes.rows, sizes.keys, warpgroups}) > 0) {
      d.hint = fmt::format("WARPGROUPS = {} would fit: fewer rows a CTA", warpgroups);
      return;
    }
  if (sizes.rows > 64 && resident(machine, work, {64, sizes.keys, sizes.warpgroups}) > 0) {
    d.hint = "ROWS = 64 would fit: fewer rows a warpgroup";
    return;
  }
  Work single = work;
  for (Work::Shared& s : single.shared) s.slots = 1;
  if (resident(machine, single, {64, 16, 1}) > 0)
    d.hint = "one slot for each tile of keys would fit, with ROWS = 64, BN = 16: fewer stages";
  else
    d.hint = fewer_columns(machine, work);
}

}  // namespace kw::sketch
