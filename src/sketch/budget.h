// What tiles take of a multiprocessor, and how many CTAs share it.
//
// The sum is what a refusal prints, line by line. Shared tiles begin at multiples of 1024 bytes
// (the swizzle's), CTAs share a multiprocessor's memory, and the system takes a part of it
// for each (support/targets.h).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sketch/place.h"
#include "timeline/gpu.h"

namespace kw::sketch {

// How a GPU moves data and multiplies; by its target.
enum class Style {
  synchronous,  // sm_75: through registers, mma
  copies,       // sm_80 and later: cp.async, mma
  engine,       // sm_90a: TMA, wgmma
};
struct Machine {
  timeline::Gpu gpu;
  std::string target;
  Style style;
  int64_t block_bytes, reserved_bytes;  // of shared memory: at most a block, and by the system
};
// `target` may be empty: the first that the GPU's description names. Reports sketch.target.
std::optional<Machine> machine(const timeline::Gpu& gpu, const std::string& target,
                               Diagnostics& diagnostics);

struct Sizes {
  int64_t rows, keys, warpgroups;  // ROWS, BN, WARPGROUPS
};
// In numbers: what the choice depends on.
struct Work {
  struct Shared {
    std::string name;
    bool of_keys;
    int64_t columns, slots;  // slots of each warpgroup's, where it is no tile of keys
  };
  std::vector<Shared> shared;
  int64_t key_accumulators = 0;  // tiles of BN columns
  int64_t columns = 0;           // of the other accumulators, together
  int64_t product_columns = 0;   // summed over or written by the products of a block of keys
  int64_t left_columns = 0;      // read from shared memory for each block of keys
  int64_t places = 0;  // registers a thread for the steps' places, where the scores have steps
};
// Slots, S1: a machine that copies asynchronously copies what the first product reads a block ahead
// (two slots), and what a later one reads while the first multiplies (one). The engine has a ring
// of two for both. Without asynchronous copies there is one slot. Where the scores are summed up in
// steps, the step of the rows comes ahead too.
Work work_of(const tl::Program& program, const Placed& placed, const Machine& machine);

struct Line {
  std::string what;
  int64_t bytes;
};
std::vector<Line> lines(const Work& work, const Sizes& sizes);
int64_t shared_bytes(const Work& work, const Sizes& sizes);
int64_t registers(const Work& work, const Sizes& sizes);  // of accumulators, a thread

// CTAs that fit, by shared memory and registers; 0: not one does.
int64_t resident(const Machine& machine, const Work& work, const Sizes& sizes);

// Reports sketch.fit: the sum line by line, what there is, and the smallest change that would fit.
void refuse(const Machine& machine, const Work& work, const Sizes& sizes, Span span,
            Diagnostics& diagnostics);

}  // namespace kw::sketch
