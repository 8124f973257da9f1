// The memory that launches of one kernel count in, list key blocks in, or prepare rows in.
//
// Launches that may run at the same time need memory of their own. Launches on one stream follow
// each other, so a stream has one set; each launch leaves its workspace zeroed for the next, and a
// pre-pass and its kernel are two such launches. A CUDA graph is another matter: it is captured on
// a stream and replayed on any, perhaps beside a launch on the first. So what a capture records
// uses memory of that capture's own, which exists, and holds zeros, before the capture ends: it is
// allocated in relaxed capture mode, and zeroed on a stream of its own that captures nothing.
// Replays of one graph follow each other; a graph that is instantiated twice must not be replayed
// twice at once.
//
// Memory is never given back before the kernel is, since a launch or a graph may still use it.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "runtime/launch/driver_api.h"
#include "runtime/launch/pack.h"

namespace kw::runtime {

class Workspaces {
 public:
  explicit Workspaces(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}

  // What the capture that `stream` is in is known by; 0 where it captures nothing.
  uint64_t capture_of(CuStream stream) const;
  // The memory of one launch. A scratch holds anything, others hold zeros. 0 with driver.call when
  // memory is short. The kernel's context must be current.
  CuDevicePointer find(const PackedWorkspace& needed, CuStream stream, uint64_t capture,
                       Diagnostics& diagnostics);
  // Whether all that must hold zeros does. Waits for the launches. Reports launch.workspace.
  bool are_zero(const LaunchSpec& spec, Diagnostics& diagnostics);
  // Gives all memory back; nothing may run any more.
  void release();

 private:
  struct Memory {
    CuDevicePointer address = 0;
    int64_t bytes = 0;
    bool zeroed = true;
  };
  bool zero(CuDevicePointer address, int64_t bytes, CuStream stream, uint64_t capture) const;

  std::shared_ptr<const Driver> driver_;
  std::mutex mutex_;
  std::map<std::tuple<CuStream, uint64_t, int64_t>, Memory> memory_;  // stream, capture, offset
  std::vector<CuDevicePointer> allocated_;
};

}  // namespace kw::runtime
