// How long a launch of a program takes on a GPU that need not be there.
//
// 1. Every block of the launch is walked in brief: how often its loops go round. Blocks that go
//    round alike are one kind.
// 2. A few kinds are simulated (simulate.h), each as blocks one after the other, so that the loads
//    of one run under the end of the one before.
//    Others lie between two that were.
// 3. Blocks go to clusters as the program says: dealt in turn, or to whoever is free first
//    (a queue, or a grid of single blocks).
//    The last cluster ends the launch.
// 4. Cycles become time by the clock. Where power limits it (Gpu::power), it is what the GPU holds
//    at full use of the tensor cores, times (their use) ^ -exponent, and at most the highest.
//
// Out of account: blocks of different kinds on one cluster are taken one by one; L2 misses, but
// that no launch is faster than its tensors come from memory.
#pragma once
#include <map>
#include <optional>

#include "timeline/simulate.h"

namespace kw::timeline {

using Shape = std::map<std::string, int64_t>;  // "B", "M", ..., and integer arguments by name

// "B=4,H=16,M=4096", without what completed() adds (launch.h). Reports timeline.shape.
std::optional<Shape> parse_shape(const std::string& text, Diagnostics& diagnostics);

enum class Heat { rested, sustained };  // how warm the GPU is, where power limits its clock

struct Prediction {
  double cycles = 0;  // of the launch
  double milliseconds = 0, mhz = 0;
  Heat heat = Heat::sustained;
  bool power_limited = false, memory_limited = false;
  double product_flop = 0;        // all products issued, masked scores included
  double tensor_use = 0;          // share of the cycles in which the tensor cores multiply
  int64_t blocks = 0, slots = 0;  // of the output; clusters or CTAs at work at a time
  int kinds = 0, simulated = 0;
  double block_cycles = 0;  // of a longest block, in the middle of a launch
  double tail = 0;          // share of the time of all slots that is idle because others still work
  double tflops() const { return product_flop / milliseconds / 1e9; }
};

// Reports timeline.shape where the program does not fit the shape, timeline.gpu where the GPU lacks
// what the program uses, timeline.deadlock, and faults of the walk itself.
std::optional<Prediction> predict(const tl::Program& program, const Gpu& gpu, const Shape& shape,
                                  Heat heat, Diagnostics& diagnostics);

// One cluster over `blocks` of the longest blocks of the launch, recorded. With more than 1024
// queries or keys both are halved until a picture can hold a block; its turns are all alike.
std::optional<Timeline> pipeline(const tl::Program& program, const Gpu& gpu, const Shape& shape,
                                 int blocks, Diagnostics& diagnostics);

}  // namespace kw::timeline
