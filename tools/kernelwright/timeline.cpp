// timeline: how long a program takes on a GPU that need not be there, and what happens when.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "driver/environment/home.h"
#include "driver/environment/tools.h"
#include "timeline/draw.h"
#include "timeline/predict.h"
#include "tl/laws/laws.h"

namespace kw::cli {
namespace {

struct TimelineState {
  std::string program, gpu = "h200", shape, perfetto, svg;
  bool rested = false;
  Output output;
};

nlohmann::ordered_json to_json(const timeline::Prediction& p) {
  return {{"milliseconds", p.milliseconds},
          {"cycles", p.cycles},
          {"mhz", p.mhz},
          {"rested", p.heat == timeline::Heat::rested},
          {"power_limited", p.power_limited},
          {"memory_limited", p.memory_limited},
          {"product_flop", p.product_flop},
          {"tensor_use", p.tensor_use},
          {"blocks", p.blocks},
          {"slots", p.slots},
          {"kinds_of_blocks", p.kinds},
          {"simulated", p.simulated},
          {"block_cycles", p.block_cycles},
          {"tail", p.tail}};
}

std::string print(const timeline::Prediction& p, const timeline::Gpu& gpu) {
  return fmt::format(
      "{:.4g} ms on {}, {}: {:.0f} TFLOP/s of products (masked scores included)\n"
      "{:.0f} cycles at {:.0f} MHz{}; tensor cores in use {:.1f} % of them\n"
      "{} blocks on {} slots, {:.2f} rounds; a block {:.0f} cycles; {:.1f} % idle at the end\n"
      "{} kinds of blocks, {} simulated\n",
      p.milliseconds, gpu.name,
      !gpu.power                         ? "clock taken for constant"
      : p.heat == timeline::Heat::rested ? "rested"
                                         : "sustained",
      p.tflops(), p.cycles, p.mhz,
      p.memory_limited  ? "; memory is what limits"
      : p.power_limited ? ", which power holds"
                        : "",
      100 * p.tensor_use, p.blocks, p.slots, double(p.blocks) / double(p.slots), p.block_cycles,
      100 * p.tail, p.kinds, p.simulated);
}

bool draw(const TimelineState& state, const tl::Program& program, const timeline::Gpu& gpu,
          const timeline::Shape& shape, Diagnostics& d) {
  if (state.perfetto.empty() && state.svg.empty()) return true;
  const auto line = timeline::pipeline(program, gpu, shape, 2, d);
  if (!line) return false;
  const std::string title =
      fmt::format("{} on {}: CTA 0, two blocks of the output, in cycles", state.program, gpu.name);
  return (state.perfetto.empty() ||
          give({state.perfetto, false}, timeline::to_trace(*line, gpu.clock_mhz), d)) &&
         (state.svg.empty() || give({state.svg, false}, timeline::to_svg(*line, title), d));
}

Result run(const TimelineState& state) {
  Diagnostics d;
  const auto home = driver::find_home(d);
  std::optional<timeline::Gpu> gpu;
  if (home) gpu = timeline::find_gpu((home->root / "gpus").string(), state.gpu, d);
  const auto shape = timeline::parse_shape(state.shape, d);
  const SourcePtr source = read_input(state.program, d);
  std::optional<tl::Program> program;
  if (source) program = tl::parse(source, d);
  std::optional<timeline::Prediction> p;
  if (gpu && shape && program && tl::verify(*program, d))
    p = timeline::predict(*program, *gpu, *shape,
                          state.rested ? timeline::Heat::rested : timeline::Heat::sustained, d);
  const bool good =
      p &&
      give(state.output, state.output.json ? to_json(*p).dump(1) + "\n" : print(*p, *gpu), d) &&
      draw(state, *program, *gpu, *shape, d);
  return finish(good ? Exit::holds : driver::exit_for(d), d, state.output);
}

}  // namespace

void add_timeline(CLI::App& app, Result& result) {
  auto state = std::make_shared<TimelineState>();
  CLI::App* command = app.add_subcommand(
      "timeline", "Predict a program's time on a GPU that need not be there; draw its pipeline");
  command->add_option("program", state->program, "PROGRAM.tl")->required();
  command->add_option("--gpu", state->gpu, "a file of gpus/, without .json")->capture_default_str();
  command
      ->add_option("--shape", state->shape,
                   "B=4,H=16,M=4096: G is H and N is M where they are not given; of a product, "
                   "M=4096,N=4096,K=4096; integer arguments by name")
      ->required();
  command->add_flag("--rested", state->rested,
                    "a short burst on a cool card, where power limits the clock");
  command->add_option("--perfetto", state->perfetto, "write a trace for ui.perfetto.dev");
  command->add_option("--svg", state->svg, "write a picture");
  command->add_option("--out", state->output.out, "file for the prediction");
  command->add_flag("--json", state->output.json, "machine-readable results and findings");
  command->callback([state, &result] { result = run(*state); });
}

}  // namespace kw::cli
