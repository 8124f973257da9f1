// launch.h and the project's own runtime, given the same tensors: the same bytes and the same
// launch, or both refuse.
//
// Compiled by tests/python/helpers/agreement.py against one folder that make wrote, which also
// generates inputs.h: `fill(Inputs&, Tensors&, Scalars&)` and the list of `changes`, each of which
// spoils one thing. One line a change: its name, what launch.h says, what the runtime says.
#include <cstddef>
#include <cstdio>
#include <functional>
#include <map>

#include "launch.h"
#include "runtime/launch/driver_api.h"
#include "runtime/launch/pack.h"

// What the runtime declares for itself is what cuda.h declares.
namespace kw::runtime {
static_assert(sizeof(CuLaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(CuLaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(CuLaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(CuLaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(CuLaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(CuLaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(CuLaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(CuLaunchAttribute, cluster) == offsetof(CUlaunchAttribute, value));
static_assert(int(launch_cluster_dimension) == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(int(function_max_dynamic_shared_bytes) ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(int(function_shared_carveout) == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
static_assert(int(device_cluster_launch) == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
}  // namespace kw::runtime

namespace {
std::map<const unsigned char*, kw::runtime::TensorMapGeometry> encoded;  // by the map's place
std::string launched;           // by one call, without their arguments
std::map<int, int> attributes;  // of the function that was loaded last

std::string launch_of(unsigned grid, unsigned cluster, unsigned threads, unsigned shared) {
  return "grid " + std::to_string(grid) + " cluster " + std::to_string(cluster) + " threads " +
         std::to_string(threads) + " shared " + std::to_string(shared);
}
}  // namespace

CUresult CUDAAPI cuModuleLoadData(CUmodule*, const void*) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuModuleGetFunction(CUfunction*, CUmodule, const char*) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuFuncSetAttribute(CUfunction, CUfunction_attribute name, int value) {
  attributes[name] = value;
  return CUDA_SUCCESS;
}

// The stand-in for the driver's launch writes down what it was asked for; every dimension counts.
CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction, void**, void**) {
  unsigned cluster = 1;
  for (unsigned n = 0; n < c->numAttrs; ++n) {
    if (c->attrs[n].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return CUDA_ERROR_INVALID_VALUE;
    const auto& size = c->attrs[n].value.clusterDim;
    cluster = size.x * size.y * size.z;
  }
  launched += launched.empty() ? "" : "; ";
  launched += launch_of(c->gridDimX * c->gridDimY * c->gridDimZ, cluster,
                        c->blockDimX * c->blockDimY * c->blockDimZ, c->sharedMemBytes);
  return CUDA_SUCCESS;
}

// The stand-in for the driver's encoder writes down what it was asked for.
CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                        void*, const cuuint64_t* dims, const cuuint64_t* strides,
                                        const cuuint32_t* box, const cuuint32_t*,
                                        CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                                        CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill) {
  if (rank != 5) return CUDA_ERROR_INVALID_VALUE;
  auto& g = encoded[reinterpret_cast<const unsigned char*>(map)];
  g.dtype = type;
  g.swizzle = swizzle;
  g.l2_promotion = promotion;
  for (int d = 0; d < 5; ++d) g.dims[d] = dims[d], g.box[d] = box[d];
  for (int d = 0; d < 4; ++d) g.strides[d] = strides[d];
  return CUDA_SUCCESS;
}

#include "inputs.h"  // generated

namespace {

constexpr int kMultiprocessors = 132;

bool same(const kw::runtime::TensorMapGeometry& a, const kw::runtime::TensorMapGeometry& b) {
  return a.dtype == b.dtype && a.swizzle == b.swizzle && a.l2_promotion == b.l2_promotion &&
         a.dims == b.dims && a.strides == b.strides && a.box == b.box;
}

// What loading asks of the driver is what the runtime asks (Kernel::load_module).
bool loads_alike(const kw::runtime::LaunchSpec& spec) {
  CUfunction kernel;
  if (made::load_all(&kernel) != CUDA_SUCCESS) return false;
  std::map<int, int> wanted = {
      {kw::runtime::function_max_dynamic_shared_bytes, int(spec.shared_bytes)}};
  if (spec.resident > 1 && spec.shared_bytes > 0)
    wanted[kw::runtime::function_shared_carveout] = 100;
  return attributes == wanted;
}

// What differs between the plan and the packed struct; empty: nothing.
std::string difference(const made::Plan& plan, const kw::runtime::LaunchSpec& spec,
                       kw::runtime::Packed packed, const kw::runtime::Tensors& tensors) {
  launched.clear();
  if (made::launch_all(plan) != CUDA_SUCCESS) return "the launch";
  std::string ours;
  for (size_t n = 0; n < spec.before.size(); ++n)
    ours += launch_of(packed.grid_before[n], 1, unsigned(spec.before[n].threads), 0) + "; ";
  ours += launch_of(packed.grid, unsigned(spec.cluster), unsigned(spec.threads),
                    unsigned(spec.shared_bytes));
  for (size_t n = 0; n < spec.after.size(); ++n)
    ours += "; " + launch_of(packed.grid_after[n], 1, unsigned(spec.after[n].threads), 0);
  if (launched != ours) return launched + " and " + ours;
  if (packed.bytes.size() != sizeof plan.parameters) return "the size";
  for (const auto& t : packed.tensors) {
    if (t.map && !same(*t.map, encoded[plan.parameters + t.offset])) return "the map of " + t.name;
    if (!t.map) std::memcpy(packed.bytes.data() + t.offset, &tensors.find(t.name)->second.data, 8);
  }
  for (const auto& w : packed.workspaces) {
    if (w.map && !same(*w.map, encoded[plan.parameters + w.offset])) return "the map of " + w.name;
    std::memcpy(packed.bytes.data() + w.pointer(), &made::kWorkspace, 8);
  }
  for (size_t n = 0; n < packed.bytes.size(); ++n)
    if (packed.bytes[n] != plan.parameters[n]) return "byte " + std::to_string(n);
  return "";
}

}  // namespace

int main(int, char** argv) {
  kw::Diagnostics d;
  const auto spec = kw::runtime::read_launch_spec(kw::read_source(argv[1]), d);
  if (!spec) return std::fputs(kw::render(d).c_str(), stderr), 2;
  if (!loads_alike(*spec)) return std::fputs("launch.h loads otherwise\n", stderr), 2;
  for (const auto& [name, spoil] : made::changes()) {
    made::Inputs in{};
    kw::runtime::Tensors tensors;
    kw::runtime::Scalars scalars;
    made::fill(in, tensors, scalars);
    spoil(in, tensors, scalars);
    made::Plan plan;
    kw::Diagnostics found;
    const char* wrong = made::make_plan(in, kMultiprocessors, plan);
    const auto packed = kw::runtime::pack(*spec, tensors, scalars, kMultiprocessors, found);
    const std::string ours = packed ? "" : found.all()[0].code;
    const std::string unlike = wrong || !packed ? "" : difference(plan, *spec, *packed, tensors);
    std::printf("%s|%s|%s|%s\n", name, wrong ? wrong : "", ours.c_str(), unlike.c_str());
  }
}
