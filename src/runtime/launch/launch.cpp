#include "runtime/launch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "compile/cubin.h"

namespace kw::runtime {
namespace {

// "sm_90a" runs on 9.0 alone; "sm_80" on 8.0 and later minors of 8 (CUDA C++ Programming Guide,
// "Application Compatibility").
bool runs_on(const std::string& target, int major, int minor) {
  const bool exact = std::isalpha(static_cast<unsigned char>(target.back()));
  const int number = std::atoi(target.c_str() + 3);
  const int want_major = number / 10, want_minor = number % 10;
  return major == want_major && (exact ? minor == want_minor : minor >= want_minor);
}

// One kernel's share of a launch.
struct Blocks {
  const std::string& entry;
  std::array<unsigned, 3> grid;
  int64_t threads, shared_bytes, cluster;
};

// One driver call for every launch. A cluster is an attribute of the launch, absent where each
// block is alone: GPUs without clusters do not know it.
bool launch_blocks(const Driver& cuda, const Blocks& blocks, CuFunction function, CuStream stream,
                   void* argument_struct, Diagnostics& diagnostics) {
  CuLaunchAttribute clusters = {};
  clusters.id = launch_cluster_dimension;
  clusters.cluster = {static_cast<unsigned>(blocks.cluster), 1, 1};
  const CuLaunchConfig config = {{blocks.grid[0], blocks.grid[1], blocks.grid[2]},
                                 {static_cast<unsigned>(blocks.threads), 1, 1},
                                 static_cast<unsigned>(blocks.shared_bytes),
                                 stream,
                                 &clusters,
                                 blocks.cluster > 1 ? 1u : 0u};
  const CuResult result = cuda.launch(&config, function, &argument_struct, nullptr);
  if (result == 0) return true;  // a launch takes microseconds: words are for those that fail
  const std::string in_clusters =
      blocks.cluster > 1 ? fmt::format(" in clusters of {}", blocks.cluster) : std::string();
  return cuda.ok(result,
                 fmt::format("launching {} with {} blocks of {} threads{}", blocks.entry,
                             blocks.grid[0] * uint64_t{blocks.grid[1]} * blocks.grid[2],
                             blocks.threads, in_clusters),
                 diagnostics);
}

bool encode_map(const Driver& cuda, const TensorMapGeometry& map, uint64_t address,
                const std::string& name, CuTensorMap& encoded, Diagnostics& diagnostics) {
  const uint32_t steps[5] = {1, 1, 1, 1, 1};
  constexpr int no_interleave = 0, fill_zeros = 0;
  return cuda.ok(cuda.tensor_map_encode(&encoded, map.dtype, 5, reinterpret_cast<void*>(address),
                                        map.dims.data(), map.strides.data(), map.box.data(), steps,
                                        no_interleave, map.swizzle, map.l2_promotion, fill_zeros),
                 "encoding the tensor map of " + name, diagnostics);
}

bool check_parameters(const Cubin& cubin, const std::string& name, int64_t bytes,
                      Diagnostics& diagnostics) {
  for (const CubinEntry& entry : cubin.entries) {
    if (entry.name != name) continue;
    if (entry.parameter_bytes == bytes) return true;
    diagnostics.error(
        "launch.parameters", {},
        fmt::format("{} takes {} bytes of arguments in the cubin and {} in launch.json", name,
                    entry.parameter_bytes, bytes));
    return false;
  }
  diagnostics.error("launch.parameters", {},
                    fmt::format("the cubin has no entry {}, which launch.json names", name));
  return false;
}

}  // namespace

std::unique_ptr<Kernel> Kernel::load(std::shared_ptr<const Driver> driver, const std::string& cubin,
                                     LaunchSpec spec, int device, Diagnostics& diagnostics) {
  const std::optional<Cubin> image = read_cubin(cubin, diagnostics);
  if (!image) return nullptr;
  for (const std::string& entry : spec.entries())
    if (!check_parameters(*image, entry, spec.parameter_bytes, diagnostics)) return nullptr;
  std::unique_ptr<Kernel> kernel(new Kernel(std::move(driver), std::move(spec)));
  CuDevice handle = 0;
  const Driver& cuda = kernel->driver();
  if (!cuda.ok(cuda.device_get(&handle, device), fmt::format("opening GPU {}", device),
               diagnostics) ||
      !kernel->check_device(handle, diagnostics) ||
      !cuda.ok(cuda.primary_context_retain(&kernel->context_, handle), "opening the context",
               diagnostics) ||
      !kernel->load_module(cubin, diagnostics))
    return nullptr;
  return kernel;
}

std::unique_ptr<Kernel> Kernel::load_folder(std::shared_ptr<const Driver> driver,
                                            const std::string& folder, int device,
                                            Diagnostics& diagnostics) {
  SourcePtr files[2];
  const char* names[2] = {"kernel.cubin", "launch.json"};
  for (int i = 0; i < 2; ++i)
    if (!(files[i] = read_source(folder + "/" + names[i]))) {
      diagnostics.error("launch.folder", {},
                        fmt::format("{}/{}: {}", folder, names[i], strerror(errno)));
      return nullptr;
    }
  std::optional<LaunchSpec> spec = read_launch_spec(files[1], diagnostics);
  if (!spec) return nullptr;
  return load(std::move(driver), files[0]->text, std::move(*spec), device, diagnostics);
}

bool Kernel::check_device(CuDevice device, Diagnostics& diagnostics) {
  int major = 0, minor = 0, shared = 0, clusters = 0;
  driver_->device_attribute(&major, device_capability_major, device);
  driver_->device_attribute(&minor, device_capability_minor, device);
  driver_->device_attribute(&shared, device_shared_bytes_optin, device);
  driver_->device_attribute(&multiprocessors_, device_multiprocessor_count, device);
  driver_->device_attribute(&clusters, device_cluster_launch, device);
  if (!runs_on(spec_.target, major, minor)) {
    diagnostics.error(
        "launch.target", {},
        fmt::format("the kernel is built for {}, the GPU is sm_{}{}", spec_.target, major, minor));
    return false;
  }
  if (spec_.cluster > 1 && !clusters) {
    diagnostics.error("launch.target", {},
                      fmt::format("the kernel runs in clusters of {} CTAs, the GPU or its "
                                  "driver cannot launch clusters",
                                  spec_.cluster));
    return false;
  }
  if (spec_.shared_bytes <= shared) return true;
  diagnostics.error(
      "launch.target", {},
      fmt::format("the kernel needs {} bytes of shared memory, the GPU has {} a block",
                  spec_.shared_bytes, shared));
  return false;
}

bool Kernel::load_module(const std::string& cubin, Diagnostics& diagnostics) {
  const CurrentContext current(*driver_, context_);
  const RelaxedCapture relaxed(*driver_);
  if (!driver_->ok(driver_->module_load(&module_, cubin.data()), "loading the cubin",
                   diagnostics) ||
      !driver_->ok(driver_->module_function(&function_, module_, spec_.entry.c_str()),
                   "finding " + spec_.entry, diagnostics) ||
      !driver_->ok(driver_->function_set(function_, function_max_dynamic_shared_bytes,
                                         static_cast<int>(spec_.shared_bytes)),
                   fmt::format("asking for {} bytes of shared memory", spec_.shared_bytes),
                   diagnostics))
    return false;
  for (const PrePass& p : spec_.before)
    if (!driver_->ok(driver_->module_function(&before_.emplace_back(), module_, p.entry.c_str()),
                     "finding " + p.entry, diagnostics))
      return false;
  for (const PrePass& p : spec_.after)
    if (!driver_->ok(driver_->module_function(&after_.emplace_back(), module_, p.entry.c_str()),
                     "finding " + p.entry, diagnostics))
      return false;
  // The driver otherwise leaves as much for the L1 cache as one CTA can spare. What needs no shared
  // memory wants that: loads that are on their way to registers have their places there.
  return spec_.resident == 1 || spec_.shared_bytes == 0 ||
         driver_->ok(driver_->function_set(function_, function_shared_carveout, 100),
                     fmt::format("asking for shared memory for {} CTAs", spec_.resident),
                     diagnostics);
}

Kernel::~Kernel() {
  if (!module_) return;
  const CurrentContext current(*driver_, context_);
  // A launch may still run: memory and code must outlive it.
  driver_->context_synchronize();
  workspaces_.release();
  driver_->module_unload(module_);
}

std::unique_ptr<Plan> Kernel::plan(const Tensors& tensors, const Scalars& scalars,
                                   Diagnostics& diagnostics) const {
  const CurrentContext current(*driver_, context_);  // of autograd's thread there may be none
  std::optional<Packed> packed = pack(spec_, tensors, scalars, multiprocessors_, diagnostics);
  if (!packed) return nullptr;
  std::unique_ptr<Plan> plan(new Plan(*this, std::move(*packed)));
  if (!plan->encode(tensors, diagnostics)) return nullptr;
  return plan;
}

bool Kernel::workspaces_are_zero(Diagnostics& diagnostics) const {
  const CurrentContext current(*driver_, context_);
  return workspaces_.are_zero(spec_, diagnostics);
}

bool Plan::encode(const Tensors& tensors, Diagnostics& diagnostics) {
  const Driver& cuda = kernel_.driver();
  for (const PackedTensor& tensor : packed_.tensors) {
    const uint64_t address = tensors.find(tensor.name)->second.data;
    encoded_.push_back(address);
    if (!tensor.map) continue;
    CuTensorMap encoded;
    if (!encode_map(cuda, *tensor.map, address, tensor.name, encoded, diagnostics)) return false;
    memcpy(packed_.bytes.data() + tensor.offset, encoded.bytes, sizeof encoded.bytes);
  }
  return true;
}

bool Plan::enqueue(const std::vector<uint64_t>& addresses, CuStream stream,
                   Diagnostics& diagnostics) const {
  return enqueue(addresses.data(), addresses.size(), stream, diagnostics);
}

bool Plan::enqueue(const uint64_t* addresses, size_t count, CuStream stream,
                   Diagnostics& diagnostics) const {
  const Driver& cuda = kernel_.driver();
  if (count != packed_.tensors.size()) {
    diagnostics.error(
        "launch.missing", {},
        fmt::format("{} addresses are given for {} tensors", count, packed_.tensors.size()));
    return false;
  }
  const CurrentContext current(cuda, kernel_.context());
  alignas(64) unsigned char bytes[largest_parameters];
  memcpy(bytes, packed_.bytes.data(), packed_.bytes.size());
  for (size_t i = 0; i < count; ++i) {
    const PackedTensor& tensor = packed_.tensors[i];
    if (!check_address(tensor, addresses[i], diagnostics)) return false;
    if (!tensor.map) {
      memcpy(bytes + tensor.offset, &addresses[i], sizeof addresses[i]);
    } else if (addresses[i] != encoded_[i]) {
      auto* map = reinterpret_cast<CuTensorMap*>(bytes + tensor.offset);
      const CuResult result = cuda.tensor_map_address(map, reinterpret_cast<void*>(addresses[i]));
      if (result != 0)
        return cuda.ok(result, "pointing the tensor map of " + tensor.name, diagnostics);
    }
  }
  const uint64_t capture = packed_.workspaces.empty() ? 0 : kernel_.workspaces_.capture_of(stream);
  for (const PackedWorkspace& needed : packed_.workspaces) {
    const CuDevicePointer address = kernel_.workspaces_.find(needed, stream, capture, diagnostics);
    if (!address) return false;
    memcpy(bytes + needed.pointer(), &address, sizeof address);
    CuTensorMap map;
    if (!needed.map) continue;
    if (!encode_map(cuda, *needed.map, address, needed.name, map, diagnostics)) return false;
    memcpy(bytes + needed.offset, map.bytes, sizeof map.bytes);
  }
  const LaunchSpec& spec = kernel_.spec();
  for (size_t n = 0; n < spec.before.size(); ++n) {
    const PrePass& p = spec.before[n];
    if (!launch_blocks(cuda, {p.entry, {packed_.grid_before[n], 1, 1}, p.threads, 0, 1},
                       kernel_.before_[n], stream, bytes, diagnostics))
      return false;
  }
  if (!launch_blocks(cuda,
                     {spec.entry,
                      {packed_.grid, packed_.grid_y, packed_.grid_z},
                      spec.threads,
                      spec.shared_bytes,
                      spec.cluster},
                     kernel_.function_, stream, bytes, diagnostics))
    return false;
  for (size_t n = 0; n < spec.after.size(); ++n) {
    const PrePass& p = spec.after[n];
    if (!launch_blocks(cuda, {p.entry, {packed_.grid_after[n], 1, 1}, p.threads, 0, 1},
                       kernel_.after_[n], stream, bytes, diagnostics))
      return false;
  }
  return true;
}

}  // namespace kw::runtime
