// What a GPU can do in a cycle: the figures that a prediction is made of, one file a GPU (gpus/).
//
// Each figure of a file stands with its source, a public document or a measurement; one that was
// fitted to measured kernels says "calibrated": true, one that nobody has measured there "assumed".
// Rates are for one multiprocessor and cycle. A multiprocessor has four schedulers, and a
// warpgroup's four warps sit on one each; so lanes / 4 is what a warp has to itself.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace kw::timeline {

// Where power limits the clock: mhz at full use of the tensor cores, more where they idle
// (predict.h).
struct Power {
  double exponent = 0, rested_mhz = 0, sustained_mhz = 0;
};

struct Gpu {
  std::string name;
  std::vector<std::string> targets;  // that a kernel may be compiled for
  int multiprocessors = 0;
  double clock_mhz = 0;  // the highest
  int64_t shared_bytes = 0, registers = 0;
  std::map<std::string, double> tensor_flop;  // "wgmma.bf16": multiply and add are two
  double fp32_lanes = 0, alu_lanes = 0, mufu_lanes = 0;
  bool max3 = false;  // a maximum of three is one instruction
  double issue_interval =
      1;  // cycles from one instruction of a scheduler to the next, as sustained
  double shared_bytes_per_cycle = 0;
  double l2_bytes_per_cycle = 0;  // of the whole GPU
  double memory_bytes_per_second = 0;
  int64_t l2_bytes = 0;
  double copy_latency = 0, barrier_latency = 0, product_latency = 0;  // cycles
  double launch_us = 0;
  std::optional<Power> power;  // none: the clock is taken for constant
};

// Reads a file of gpus/; `name` is the GPU's. Reports timeline.gpu by the path of the field: one
// that is missing, unknown, not positive, or without a source.
std::optional<Gpu> read_gpu(const std::string& name, const SourcePtr& source,
                            Diagnostics& diagnostics);

// gpus/NAME.json under `folder`. Reports timeline.gpu, naming those that there are.
std::optional<Gpu> find_gpu(const std::string& folder, const std::string& name,
                            Diagnostics& diagnostics);

// FLOP for each cycle of a multiprocessor: of wgmma (`async`) or mma. Reports timeline.gpu where
// the GPU has no such product of this type.
std::optional<double> product_rate(const Gpu& gpu, bool async, const std::string& dtype,
                                   Diagnostics& diagnostics);

}  // namespace kw::timeline
