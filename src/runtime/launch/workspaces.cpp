#include "runtime/launch/workspaces.h"

#include <fmt/format.h>

#include <string>

namespace kw::runtime {
uint64_t Workspaces::capture_of(CuStream stream) const {
  if (!stream) return 0;  // the legacy stream cannot capture, and asking it disturbs others that do
  int status = 0;
  uint64_t id = 0;
  const CuResult result = driver_->capture_info(stream, &status, &id, nullptr, nullptr, nullptr);
  return result == 0 && status == capture_active ? id : 0;
}

CuDevicePointer Workspaces::find(const PackedWorkspace& needed, CuStream stream, uint64_t capture,
                                 Diagnostics& diagnostics) {
  const std::lock_guard lock(mutex_);
  Memory& memory = memory_[{stream, capture, needed.offset}];
  if (memory.bytes >= needed.bytes) return memory.address;
  // A smaller one stays allocated: a launch that uses it may still run.
  const RelaxedCapture relaxed(*driver_);
  CuDevicePointer address = 0;
  const std::string what = fmt::format("allocating {} bytes for {}", needed.bytes, needed.name);
  if (!driver_->ok(driver_->allocate(&address, needed.bytes), what, diagnostics)) return 0;
  allocated_.push_back(address);
  if (needed.zeroed && !zero(address, needed.bytes, stream, capture)) {
    diagnostics.error("driver.call", {}, what + ": it cannot be filled with zeros");
    return 0;
  }
  memory = {address, needed.bytes, needed.zeroed};
  return address;
}

// In a launch's own stream the fill comes before the launch. A capture would record it, and fill
// again with each replay what the launches leave zeroed anyway.
bool Workspaces::zero(CuDevicePointer address, int64_t bytes, CuStream stream,
                      uint64_t capture) const {
  if (!capture) return driver_->fill_bytes(address, 0, bytes, stream) == 0;
  CuStream own = nullptr;
  if (driver_->stream_create(&own, stream_non_blocking) != 0) return false;
  const bool filled =
      driver_->fill_bytes(address, 0, bytes, own) == 0 && driver_->stream_synchronize(own) == 0;
  driver_->stream_destroy(own);
  return filled;
}

bool Workspaces::are_zero(const LaunchSpec& spec, Diagnostics& diagnostics) {
  const std::lock_guard lock(mutex_);
  bool zero = driver_->ok(driver_->context_synchronize(), "waiting for the launches", diagnostics);
  for (const auto& [key, memory] : memory_) {
    if (!memory.zeroed) continue;
    std::string bytes(memory.bytes, '\0');
    if (!zero || !driver_->ok(driver_->copy_from_device(bytes.data(), memory.address, bytes.size()),
                              "reading a workspace", diagnostics))
      return false;
    const size_t at = bytes.find_first_not_of('\0');
    if (at == std::string::npos) continue;
    zero = false;
    for (const Argument& a : spec.arguments)
      if (a.kind == ArgumentKind::workspace && a.offset == std::get<2>(key))
        diagnostics.error("launch.workspace", {},
                          fmt::format("{}: byte {} of {} is not zero after the launch", a.name, at,
                                      bytes.size()));
  }
  return zero;
}

void Workspaces::release() {
  for (const CuDevicePointer address : allocated_) driver_->release(address);
  allocated_.clear();
  memory_.clear();
}

}  // namespace kw::runtime
