#include "timeline/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <queue>

#include "timeline/launch.h"

namespace kw::timeline {
namespace {

constexpr int kMostSimulated = 6;
constexpr int64_t kMostShown = 1024;  // queries or keys in a picture

// Simulates a kind: alone, and among blocks of its own kind.
bool simulate_kind(LaunchModel& launch, LaunchModel::Kind& kind, Diagnostics& diagnostics) {
  const int repeat = launch.loops() ? 3 : 1;
  const auto t = launch.simulate(kind.first, repeat, false, diagnostics);
  if (!t) return false;
  kind.lone = t->end;
  kind.period = t->end;
  kind.busy = t->tensor_busy / repeat / launch.resident();
  kind.flop = t->product_flop / repeat / launch.resident();
  if (launch.loops() && t->marks.size() > size_t(repeat)) {
    kind.period = t->marks[repeat] - t->marks[repeat - 1];
    kind.lone = t->end - t->marks[repeat - 1] + t->marks[0];
  }
  return true;
}

// Kinds between two that were simulated: by the number of turns.
void interpolate(std::vector<LaunchModel::Kind>& kinds, size_t low, size_t high) {
  for (size_t n = low + 1; n < high; ++n) {
    const double x = double(kinds[n].turns - kinds[low].turns) /
                     double(std::max<int64_t>(1, kinds[high].turns - kinds[low].turns));
    const auto between = [&](double LaunchModel::Kind::*what) {
      kinds[n].*what = kinds[low].*what + x * (kinds[high].*what - kinds[low].*what);
    };
    for (const auto what : {&LaunchModel::Kind::lone, &LaunchModel::Kind::period,
                            &LaunchModel::Kind::busy, &LaunchModel::Kind::flop})
      between(what);
  }
}

int simulate_kinds(LaunchModel& launch, Diagnostics& diagnostics) {
  auto& kinds = launch.kinds();
  const size_t last = kinds.size() - 1;
  std::vector<size_t> chosen;
  for (int n = 0; n < kMostSimulated; ++n) {
    // More of the short ones, where overheads count.
    const double x = double(n) / (kMostSimulated - 1);
    const size_t at = size_t(std::lround(x * x * double(last)));
    if (chosen.empty() || chosen.back() != at) chosen.push_back(at);
  }
  for (size_t n = 0; n < chosen.size(); ++n) {
    if (!simulate_kind(launch, kinds[chosen[n]], diagnostics)) return 0;
    if (n > 0) interpolate(kinds, chosen[n - 1], chosen[n]);
  }
  return int(chosen.size());
}

// When the last slot is done, and how long all work together.
struct Work {
  double end = 0, work = 0;
};
Work run_blocks(LaunchModel& launch) {
  const auto& kinds = launch.kinds();
  const auto& blocks = launch.blocks();
  const size_t slots = std::min<size_t>(launch.slots(), blocks.size());
  std::vector<double> busy(slots, 0), drain(slots, 0);
  const auto give = [&](size_t slot, int kind) {
    const LaunchModel::Kind& k = kinds[kind];
    busy[slot] += k.period;
    drain[slot] = k.lone - k.period;
  };
  if (launch.order() == Order::dealt) {
    for (size_t w = 0; w < blocks.size(); ++w) give(w % slots, blocks[w]);
  } else {
    using Free = std::pair<double, size_t>;
    std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
    for (size_t slot = 0; slot < slots; ++slot) free.push({0, slot});
    for (const int kind : blocks) {
      const size_t slot = free.top().second;
      free.pop();
      give(slot, kind);
      free.push({busy[slot], slot});
    }
  }
  Work out;
  for (size_t slot = 0; slot < slots; ++slot) {
    out.end = std::max(out.end, busy[slot] + drain[slot]);
    out.work += busy[slot] + drain[slot];
  }
  return out;
}

}  // namespace

std::optional<Shape> parse_shape(const std::string& text, Diagnostics& diagnostics) {
  Shape shape;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    const size_t equals = one.find('='), number = equals == std::string::npos ? 0 : equals + 1;
    int64_t value = 0;
    const char *first = one.data() + number, *last = one.data() + one.size();
    if (number <= 1 || std::from_chars(first, last, value).ptr != last || first == last ||
        value < 0) {
      diagnostics
          .error("timeline.shape", {}, fmt::format("'{}' is not a name and a whole number", one))
          .hint = "for example B=4,H=16,M=4096";
      return std::nullopt;
    }
    shape[one.substr(0, equals)] = value;
    at = end + 1;
  }
  return shape;
}

std::optional<Prediction> predict(const tl::Program& program, const Gpu& gpu, const Shape& shape,
                                  Heat heat, Diagnostics& diagnostics) {
  const auto launch = LaunchModel::make(program, gpu, shape, diagnostics);
  if (!launch) return std::nullopt;
  Prediction p;
  p.heat = heat;
  p.simulated = simulate_kinds(*launch, diagnostics);
  if (!p.simulated) return std::nullopt;
  const Work span = run_blocks(*launch);
  p.cycles = span.end;
  p.blocks = int64_t(launch->blocks().size());
  p.slots = std::min(launch->slots(), p.blocks);
  p.kinds = int(launch->kinds().size());
  p.block_cycles = launch->kinds().back().period;
  p.tail = 1 - span.work / (span.end * double(p.slots));
  double busy = 0;
  for (const int kind : launch->blocks()) {
    busy += launch->kinds()[kind].busy;
    p.product_flop += launch->kinds()[kind].flop;
  }
  p.tensor_use = busy * launch->resident() / (double(launch->slots()) * p.cycles);
  p.mhz = gpu.clock_mhz;
  if (gpu.power) {
    const double full = heat == Heat::rested ? gpu.power->rested_mhz : gpu.power->sustained_mhz;
    const double held = full * std::pow(p.tensor_use, -gpu.power->exponent);
    p.power_limited = held < gpu.clock_mhz;
    p.mhz = std::min(gpu.clock_mhz, held);
  }
  p.milliseconds = p.cycles / p.mhz / 1e3;
  const double memory = launch->tensor_bytes() / gpu.memory_bytes_per_second * 1e3;
  p.memory_limited = memory > p.milliseconds;
  p.milliseconds = std::max(p.milliseconds, memory) + gpu.launch_us / 1e3;
  return p;
}

std::optional<Timeline> pipeline(const tl::Program& program, const Gpu& gpu, const Shape& shape,
                                 int blocks, Diagnostics& diagnostics) {
  Shape small = completed(program, shape);
  while (small.count("M") && small.count("N") && std::max(small["M"], small["N"]) > kMostShown)
    for (const char* size : {"M", "N"}) small[size] = std::max<int64_t>(1, small[size] / 2);
  const auto launch = LaunchModel::make(program, gpu, small, diagnostics);
  if (!launch) return std::nullopt;
  return launch->simulate(launch->kinds().back().first, launch->loops() ? blocks : 1, true,
                          diagnostics);
}

}  // namespace kw::timeline
