// Schedules for Hopper (sm_90a): the copy engine and asynchronous products.
#include "sketch/parts.h"
#include "tl/laws.h"

namespace kw::sketch {

std::optional<tl::Program> schedule_engine(const Parts& parts, Diagnostics& diagnostics) {
  diagnostics.error("sketch.target", parts.plan.plan->span, "no schedule for sm_90a");
  return std::nullopt;
}

}  // namespace kw::sketch
