// A kernel on a GPU: loaded once, planned once for each set of shapes, enqueued often.
//
//   auto driver = Driver::open(diagnostics);
//   auto kernel = Kernel::load(driver, cubin, *spec, 0, diagnostics);
//   auto plan = kernel->plan({{"q", q}, {"k", k}, ...}, {}, diagnostics);
//   plan->enqueue({q.data, k.data, ...}, stream, diagnostics);   // microseconds
//
// A plan holds the packed argument struct; enqueue copies it, puts the addresses in and launches,
// so any thread may enqueue any plan. Workspaces belong to the kernel, one set for each stream and
// one for each capture of a CUDA graph (workspaces.h); a first launch may be captured.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/launch/driver_api.h"
#include "runtime/launch/pack.h"
#include "runtime/launch/workspaces.h"

namespace kw::runtime {

class Kernel;

class Plan {
 public:
  // `addresses` are those of the tensor arguments, in launch.json's order. Reports
  // launch.alignment, launch.missing (a wrong count) and driver.call.
  bool enqueue(const std::vector<uint64_t>& addresses, CuStream stream,
               Diagnostics& diagnostics) const;
  bool enqueue(const uint64_t* addresses, size_t count, CuStream stream,
               Diagnostics& diagnostics) const;
  // The tensors' names in that order, and the number of blocks.
  const std::vector<PackedTensor>& tensors() const { return packed_.tensors; }
  uint32_t grid() const { return packed_.grid; }

 private:
  friend class Kernel;
  Plan(const Kernel& kernel, Packed packed) : kernel_(kernel), packed_(std::move(packed)) {}
  bool encode(const Tensors& tensors, Diagnostics& diagnostics);

  const Kernel& kernel_;
  Packed packed_;
  std::vector<uint64_t> encoded_;  // the addresses that the packed tensor maps hold
};

class Kernel {
 public:
  // Loads a cubin for GPU number `device`, in its primary context. Reports launch.target when the
  // GPU cannot run it, launch.parameters when cubin and spec disagree, and driver.call.
  static std::unique_ptr<Kernel> load(std::shared_ptr<const Driver> driver,
                                      const std::string& cubin, LaunchSpec spec, int device,
                                      Diagnostics& diagnostics);
  // From a folder's kernel.cubin and launch.json.
  static std::unique_ptr<Kernel> load_folder(std::shared_ptr<const Driver> driver,
                                             const std::string& folder, int device,
                                             Diagnostics& diagnostics);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Checks the tensors against launch.json (see pack.h). The plan must not outlive the kernel.
  std::unique_ptr<Plan> plan(const Tensors& tensors, const Scalars& scalars,
                             Diagnostics& diagnostics) const;

  // Whether every workspace holds zeros again. Waits for the launches. Reports launch.workspace.
  bool workspaces_are_zero(Diagnostics& diagnostics) const;

  const LaunchSpec& spec() const { return spec_; }
  const Driver& driver() const { return *driver_; }
  CuContext context() const { return context_; }

 private:
  friend class Plan;
  Kernel(std::shared_ptr<const Driver> driver, LaunchSpec spec)
      : driver_(std::move(driver)), spec_(std::move(spec)), workspaces_(driver_) {}
  bool check_device(CuDevice device, Diagnostics& diagnostics);
  bool load_module(const std::string& cubin, Diagnostics& diagnostics);

  std::shared_ptr<const Driver> driver_;
  LaunchSpec spec_;
  CuContext context_ = nullptr;
  CuModule module_ = nullptr;
  CuFunction function_ = nullptr;
  std::vector<CuFunction> before_;  // the entries before it
  std::vector<CuFunction> after_;   // and those behind
  int multiprocessors_ = 0;
  mutable Workspaces workspaces_;
};

}  // namespace kw::runtime
