// One CTA or cluster in time: a discrete-event simulation of the events that the schedules
// reading records (schedules/model.h), each with what it costs (cost.h).
//
// The agents are those of the program: every warpgroup (its four warps in step, one on each
// scheduler of the multiprocessor) and every thread of the loader. What they contend for, in one
// multiprocessor:
//   tensor cores   products run one after the other in the order of issue, whoever issued them
//   schedulers     warps that compute at the same time share issue slots and arithmetic pipes;
//                  nobody is faster than alone, and what is scarce is shared out evenly
//   copy engine    tiles come one after the other, at this multiprocessor's share of L2
// Barriers, phases, rings and named barriers mean what they mean on the device. Times are cycles.
//
// What is left out: banks of shared memory, the register file's ports, instruction fetch, and other
// multiprocessors but through their share of L2.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schedules/model.h"
#include "timeline/gpu.h"

namespace kw::timeline {

enum class BarKind { compute, product, copy, wait };

struct Bar {
  int track = 0;
  BarKind kind = BarKind::compute;
  double begin = 0, end = 0;  // cycles
  const tl::Stmt* stmt = nullptr;
};

struct Track {
  std::string name;
  int cta = 0;
};

// Its statements are those of the program, which must outlive it.
struct Timeline {
  std::vector<Track> tracks;
  std::vector<Bar> bars;
  // When the last warpgroup began block u of the sequence; the last entry: when it left the loop.
  std::vector<double> marks;
  double end = 0;           // of everything
  double tensor_busy = 0;   // cycles, of the busiest multiprocessor
  double product_flop = 0;  // of all CTAs
  double copied_bytes = 0;  // read from L2, of all CTAs
};

struct SimulateOptions {
  std::string dtype = "bf16";  // of the operands
  int resident = 1;            // CTAs that share a multiprocessor, all with these streams
  bool record = false;         // tracks and bars
};

// `streams` and `tables` with each warpgroup's warps as one agent (merge_warps), walked with
// Walker::measure. Reports timeline.deadlock where nobody can go on, with the statement, and
// timeline.gpu for a kind of product that the GPU does not have.
std::optional<Timeline> simulate(const exec::schedule::Tables& tables,
                                 const std::vector<exec::schedule::Stream>& streams, const Gpu& gpu,
                                 const SimulateOptions& options, Diagnostics& diagnostics);

}  // namespace kw::timeline
