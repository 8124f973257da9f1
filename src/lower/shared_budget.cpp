#include "lower/shared_budget.h"

#include <fmt/format.h>

#include "support/targets.h"

namespace kw::lower {

bool fits_target(const LaunchPlan& plan, const std::vector<SharedLine>& lines, const Span& where,
                 Diagnostics& diagnostics) {
  const TargetLimits* limits = find_target(plan.target);
  if (!limits) return true;
  const int64_t taken = plan.resident * (plan.shared_bytes + limits->reserved_bytes);
  std::string message;
  if (plan.shared_bytes > limits->block_shared_bytes)
    message = fmt::format("a CTA takes {} bytes of shared memory, {} has {}", plan.shared_bytes,
                          plan.target, limits->block_shared_bytes);
  else if (taken > limits->processor_shared_bytes)
    message =
        fmt::format("{} CTAs that share a multiprocessor take {} bytes of shared memory, {} has {}",
                    plan.resident, taken, plan.target, limits->processor_shared_bytes);
  if (message.empty()) return true;
  Diagnostic& d = diagnostics.error("launch.shared", where, message);
  for (const SharedLine& line : lines)
    d.notes.push_back({fmt::format("{}: {} bytes", line.text, line.bytes), {}});
  d.notes.push_back(
      {fmt::format("in all, as a multiple of 1024: {} bytes", plan.shared_bytes), {}});
  if (plan.resident > 1 && limits->reserved_bytes > 0)
    d.notes.push_back({fmt::format("{} times that and {} bytes of the system's each: {} bytes",
                                   plan.resident, limits->reserved_bytes, taken),
                       {}});
  d.hint = "use smaller tiles or fewer stages, or compile for a target that has more";
  return false;
}

}  // namespace kw::lower
