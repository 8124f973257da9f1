// A sized product, scheduled: who copies, multiplies and stores when. Internal; schedule.h is the
// door.
//
// What both schedules keep, for rules look for it (transfer/families/gemm/rules/rules.h):
//   Y1  the fields of a block are named m, n (or first and last), h and b, and the arguments say
//       how many tiles there are downwards (rows) and across (columns).
//   Y2  the right side lies in a ring of its own: it may be read transposed.
//   Y3  steps of the sum go from the last to the first, so that the ragged one comes first.
#pragma once
#include <string>

#include "sketch/families/gemm/gemm.h"
#include "sketch/families/gemm/tiles.h"
#include "sketch/parts.h"

namespace kw::sketch {

struct SizedProduct {
  const tl::Program& program;
  Product product;
  Machine machine;
  ProductSizes sizes;
  std::string o_s;
  // Names of the sized grid's counters, and of the step.
  std::string m, n, head, batch, me, step;
};

// A tensor's place as the kernel says it: the batch entry and the product are the block's fields,
// the first column is `column`, and a counter of the grid or of steps what `more` says.
std::string kernel_place(const SizedProduct& p, const tl::ExprPtr& place, const std::string& column,
                         const std::vector<tl::Replacement>& more = {});
tl::ExprPtr expression(const std::string& text);

// Reports what read_product and hold_product_tiles report, and sketch.shape for a module without
// the parameters that size() writes.
std::optional<tl::Program> schedule_product(const tl::Program& sized, const Machine& machine,
                                            Diagnostics& diagnostics);

std::string product_alike(const SizedProduct& p);
std::string product_engine(const SizedProduct& p);

}  // namespace kw::sketch
