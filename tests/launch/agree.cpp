// launch.h and the project's own runtime, given the same tensors: the same bytes, or both refuse.
//
// Compiled by tests/python/test_make.py against one folder that make wrote, which also generates
// inputs.h: `fill(Inputs&, Tensors&, Scalars&)` and the list of `changes`, each of which spoils one
// thing. One line a change: its name, what launch.h says, what the runtime says.
#include <cstdio>
#include <functional>
#include <map>

#include "launch.h"
#include "runtime/pack.h"

namespace {
std::map<const unsigned char*, kw::runtime::TensorMapGeometry> encoded;  // by the map's place
}

// The stand-in for the driver's encoder writes down what it was asked for.
CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                        void*, const cuuint64_t* dims, const cuuint64_t* strides,
                                        const cuuint32_t* box, const cuuint32_t*,
                                        CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                                        CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill) {
  if (rank != 5 || swizzle != CU_TENSOR_MAP_SWIZZLE_128B) return CUDA_ERROR_INVALID_VALUE;
  auto& g = encoded[reinterpret_cast<const unsigned char*>(map)];
  g.dtype = type;
  g.l2_promotion = promotion;
  for (int d = 0; d < 5; ++d) g.dims[d] = dims[d], g.box[d] = box[d];
  for (int d = 0; d < 4; ++d) g.strides[d] = strides[d];
  return CUDA_SUCCESS;
}

#include "inputs.h"  // generated

namespace {

constexpr int kMultiprocessors = 132;

bool same(const kw::runtime::TensorMapGeometry& a, const kw::runtime::TensorMapGeometry& b) {
  return a.dtype == b.dtype && a.l2_promotion == b.l2_promotion && a.dims == b.dims &&
         a.strides == b.strides && a.box == b.box;
}

// What differs between the plan and the packed struct; empty: nothing.
std::string difference(const made::Plan& plan, kw::runtime::Packed packed,
                       const kw::runtime::Tensors& tensors) {
  if (plan.grid != packed.grid) return "the grid";
  if (packed.bytes.size() != sizeof plan.parameters) return "the size";
  for (const auto& t : packed.tensors) {
    if (t.map && !same(*t.map, encoded[plan.parameters + t.offset])) return "the map of " + t.name;
    if (!t.map) std::memcpy(packed.bytes.data() + t.offset, &tensors.find(t.name)->second.data, 8);
  }
  for (const auto& w : packed.workspaces)
    std::memcpy(packed.bytes.data() + w.offset, &made::kWorkspace, 8);
  for (size_t n = 0; n < packed.bytes.size(); ++n)
    if (packed.bytes[n] != plan.parameters[n]) return "byte " + std::to_string(n);
  return "";
}

}  // namespace

int main(int, char** argv) {
  kw::Diagnostics d;
  const auto spec = kw::runtime::read_launch_spec(kw::read_source(argv[1]), d);
  if (!spec) return std::fputs(kw::render(d).c_str(), stderr), 2;
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
    const std::string unlike = wrong || !packed ? "" : difference(plan, *packed, tensors);
    std::printf("%s|%s|%s|%s\n", name, wrong ? wrong : "", ours.c_str(), unlike.c_str());
  }
}
