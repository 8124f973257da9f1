// What a statement costs one warp, in instructions: counted from the statement, never guessed from
// the kernel.
//
// A map's body is counted for each element: what depends on nothing but scalars is computed once
// and costs nothing, what depends on the row alone once a row, all else for every element. A
// product and a sum contract into one fma, as the compiler does. Then come the pipes of a
// scheduler: arithmetic of reals (fma), minimum, comparison, integers and conversions (alu), and
// the special functions (mufu). Of one warp's work they run side by side; what takes longest is its
// time.
#pragma once
#include "schedules/model.h"
#include "timeline/gpu.h"

namespace kw::timeline {

// Warp instructions. `latency`: cycles in which this warp can do nothing else.
struct Cost {
  double issue = 0, fma = 0, alu = 0, mufu = 0, latency = 0;
  Cost& operator+=(const Cost& o);
};

// Of a map's body: for each element, and for each row.
struct BodyCost {
  Cost element, row;
};
// `operands`: names of which an element b[i, j] is in a register.
BodyCost body_cost(const tl::Stmt& map, const std::set<std::string>& operands = {});

// Of one warp's share of a statement that computes on its own registers.
Cost statement_cost(const tl::Stmt& s, const exec::schedule::Tables::Work& work, const Gpu& gpu,
                    const std::set<std::string>& operands);

// Cycles of one scheduler's pipes.
struct Demand {
  double issue = 0, fma = 0, alu = 0, mufu = 0;
  double latency = 0;
  double alone() const;  // of a warp that has the scheduler for itself
  Demand& operator+=(const Demand& o);
};
Demand demand(const Cost& cost, const Gpu& gpu);

// A product of one warpgroup: cycles of the multiprocessor's tensor cores, and of shared memory,
// which brings the operands meanwhile.
struct ProductCost {
  double tensor = 0, shared = 0, flop = 0;
  double cycles() const { return tensor > shared ? tensor : shared; }
};
ProductCost product_cost(const exec::schedule::Tables::Work& work, bool async, bool left_shared,
                         double flop_per_cycle, const Gpu& gpu);

}  // namespace kw::timeline
