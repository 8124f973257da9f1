// launch.h: the launch plan spelled as a C++ header that a user's program includes.
//
// The text is a fixed frame (tensors, tensor maps, checks) around what the plan says: one field an
// argument, one check a dimension, one line a derived value. It needs cuda.h and nothing of ours.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

#include "lower/launch_plan.h"
#include "support/largest_size.h"
#include "tl/scope/elements.h"
#include "tl/scope/functions.h"

namespace kw::lower {
namespace {

using tl::ExprKind;
using tl::ExprPtr;

constexpr const char* kFrame = R"(
// A tensor on the GPU: address, shape and strides in elements, in the order the kernel names its
// dimensions (not the order in memory). Unused dimensions are ignored.
struct Tensor {
  CUdeviceptr data;
  int64_t shape[4];
  int64_t stride[4];
};

namespace detail {
// Of a division by 0: neither a size nor an int, so that the launch is refused.
constexpr int64_t none = -(int64_t(1) << 62);
inline int64_t floor_div(int64_t a, int64_t b) { return b == 0 ? none : a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
inline int64_t floor_mod(int64_t a, int64_t b) { return b == 0 ? none : a - floor_div(a, b) * b; }
inline int64_t ceil_div(int64_t a, int64_t b) { return floor_div(a + b - 1, b); }
inline float rsqrt(float x) { return float(1.0 / std::sqrt(double(x))); }
)";

constexpr const char* kHeadsAtOnce =
    R"(inline int64_t heads_at_once(int64_t bytes, int64_t blocks, int64_t group, int64_t heads) {{
  if (bytes < 1 || blocks < 1 || group < 1) return none;
  int64_t section = 1;
  while (section * 2 * bytes <= {} || section * group * blocks < {}) section *= 2;
  return std::gcd(section * group, heads);
}}
)";

constexpr const char* kChecks =
    R"(inline bool fits(int64_t x) { return x >= INT32_MIN && x <= INT32_MAX; }
inline bool aligned(const Tensor& t, int bytes) { return t.data != 0 && t.data % bytes == 0; }
// What copies can follow: a contiguous last dimension, other strides of 16 bytes a step.
inline bool copyable(const Tensor& t) {
  for (int d = 0; d < 3; ++d)
    if (t.shape[d] > 1 && (t.stride[d] <= 0 || t.stride[d] % 8 != 0 || t.stride[d] > (int64_t(1) << 39))) return false;
  return t.stride[3] == 1;
}
)";

// Only for kernels with a pre-pass that writes tensors.
constexpr const char* kRows =
    R"(// Rows that follow each other in memory, and a tensor as the kernel has it: pointer, strides, extents.
template <int rank>
Tensor contiguous(CUdeviceptr data, const int64_t (&shape)[rank]) {
  Tensor t = {data, {}, {}};
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    t.shape[d] = shape[d];
    t.stride[d] = stride;
    stride *= shape[d];
  }
  return t;
}
inline void put(unsigned char* at, const Tensor& t, int rank) {
  std::memcpy(at, &t.data, 8);
  std::memcpy(at + 8, t.stride, 8 * rank);
  for (int d = 0; d < rank; ++d) {
    const int32_t extent = int32_t(t.shape[d]);
    std::memcpy(at + 8 + 8 * rank + 4 * d, &extent, 4);
  }
}
)";

// Only for kernels that have tensor maps.
constexpr const char* kTensorMaps =
    R"(// Four dimensions (batch, head, row, column) as the kernel's five (column in a panel, row, panel,
// head, batch), in boxes of rows x columns. A panel has 64 columns, or where the tensor is no
// multiple of that, 32. A dimension of extent 1 has no stride that matters.
// Where a box is a part of rows (`part`), there is one panel, all of a row, and a box has 64 of its columns.
inline bool encode(unsigned char* map, const Tensor& t, CUtensorMapDataType type, int rows, int columns, bool part, CUtensorMapL2promotion promotion) {
  const int panel = part || t.shape[3] % 64 == 0 ? 64 : 32;
  const auto bytes = [&](int d) { return t.shape[d] > 1 ? cuuint64_t(t.stride[d]) * 2 : cuuint64_t(128); };
  const cuuint64_t dims[5] = {cuuint64_t(part ? t.shape[3] : panel), cuuint64_t(t.shape[2]), cuuint64_t(part ? 1 : t.shape[3] / panel), cuuint64_t(t.shape[1]), cuuint64_t(t.shape[0])};
  const cuuint64_t strides[4] = {bytes(2), cuuint64_t(panel * 2), bytes(1), bytes(0)};
  const cuuint32_t box[5] = {cuuint32_t(panel), cuuint32_t(rows), cuuint32_t(columns / panel), 1, 1}, step[5] = {1, 1, 1, 1, 1};
  return cuTensorMapEncodeTiled(reinterpret_cast<CUtensorMap*>(map), type, 5, reinterpret_cast<void*>(t.data), dims, strides, box, step,
                                CU_TENSOR_MAP_INTERLEAVE_NONE, panel == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B, promotion,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
)";

// C++ text of an expression over int64_t and float locals, fully parenthesised: reals are rounded
// where the program rounds them.
std::string cpp(const ExprPtr& e) {
  const auto arg = [&](int i) { return cpp(e->args[i]); };
  switch (e->kind) {
    case ExprKind::integer:
      return "int64_t(" + e->text + ")";
    case ExprKind::real:
      return e->text + "f";
    case ExprKind::name:
      return e->text == "log2e" ? "1.4426950408889634f"
             : e->text == "ln2" ? "0.6931471805599453f"
                                : e->text;
    case ExprKind::unary:
      return (e->text == "not" ? "!" : "-") + arg(0);
    case ExprKind::binary:
      if (e->text == "//") return fmt::format("detail::floor_div({}, {})", arg(0), arg(1));
      if (e->text == "%") return fmt::format("detail::floor_mod({}, {})", arg(0), arg(1));
      return fmt::format("({} {} {})", arg(0),
                         e->text == "and"  ? "&&"
                         : e->text == "or" ? "||"
                                           : e->text,
                         arg(1));
    case ExprKind::where:
      return fmt::format("({} ? {} : {})", arg(0), arg(1), arg(2));
    case ExprKind::call: {
      std::string list;
      for (size_t i = 0; i < e->args.size(); ++i) list += (i ? ", " : "") + arg(i);
      if (e->text == "f32") return "float(" + list + ")";
      const bool std_name = e->text == "min" || e->text == "max" || e->text == "sqrt";
      return (std_name ? "std::" : "detail::") + e->text + "(" + list + ")";
    }
    default:
      return "0";
  }
}

bool is_tensor(const LaunchArgument& a) {
  return a.kind == ArgumentKind::tensor_map || a.kind == ArgumentKind::tensor;
}

// Each size is read off the first tensor that has it; every other mention must agree.
std::string checks(const LaunchPlan& plan) {
  std::string out;
  std::set<std::string> known;
  for (const LaunchArgument& a : plan.arguments) {
    if (!is_tensor(a)) continue;
    for (size_t d = 0; d < a.dims.size(); ++d) {
      const std::string dim = tl::print(a.dims[d]);
      if (a.dims[d]->kind == ExprKind::name && known.insert(dim).second)
        out += fmt::format(
            "  const int64_t {0} = in.{1}.shape[{2}];\n"
            "  if ({0} < 1 || {0} > detail::largest_size) return \"{1}: dimension {2} must be from "
            "1 to "
            "{3}, for which kernels are checked\";\n",
            dim, a.name, d, kLargestSize);
      else
        out += fmt::format("  if (in.{}.shape[{}] != {}) return \"{}: dimension {} must be {}\";\n",
                           a.name, d, dim, a.name, d, dim);
    }
  }
  return out;
}

// The caller's scalars; what the launch requires of them and of sizes; the values computed from
// both, under the names that expressions use, which what is required has made possible: no divisor
// is 0 there, no group of heads empty; and what is required of those.
std::string values(const LaunchPlan& plan) {
  std::string given, computed;
  std::vector<std::string> names;  // of what is computed
  for (const LaunchArgument& a : plan.arguments) {
    if (a.kind != ArgumentKind::size && a.kind != ArgumentKind::scalar) continue;
    if (!a.value && a.kind == ArgumentKind::size) continue;
    const bool real = a.type == "f32";
    std::string& out = a.value ? computed : given;
    if (a.value) names.push_back(a.name);
    out += fmt::format("  [[maybe_unused]] const {} {} = {};\n", real ? "float" : "int64_t", a.name,
                       a.value ? cpp(a.value) : "in." + a.name);
    if (!real)
      out +=
          fmt::format("  if (!detail::fits({0})) return \"{0} does not fit 32 bits\";\n", a.name);
    if (a.kind == ArgumentKind::size)
      out += fmt::format("  if ({0} < 1) return \"{0} is not positive\";\n", a.name);
  }
  for (const ExprPtr& r : plan.requirements) {
    const bool later = std::any_of(names.begin(), names.end(),
                                   [&](const std::string& name) { return tl::mentions(r, name); });
    (later ? computed : given) +=
        fmt::format("  if (!{}) return \"{} must hold\";\n", cpp(r), tl::print(r));
  }
  return given + computed;
}

std::string fields(const LaunchPlan& plan) {
  std::string out;
  for (const LaunchArgument& a : plan.arguments) {
    std::string shape;
    for (const ExprPtr& d : a.dims) shape += (shape.empty() ? "" : ", ") + tl::print(d);
    if (is_tensor(a))
      out += fmt::format("  Tensor {};  // {} {}[{}]\n", a.name, a.written ? "out" : "in", a.type,
                         shape);
    else if (a.kind == ArgumentKind::scalar && !a.value)
      out += fmt::format("  {} {};\n", a.type == "f32" ? "float" : "int32_t", a.name);
    else if (a.kind == ArgumentKind::workspace)
      out += fmt::format("  CUdeviceptr {};  // {} zeroed 32-bit words; the kernel leaves zeros\n",
                         a.name, shape);
    else if (a.kind == ArgumentKind::scratch)
      out += fmt::format(
          "  CUdeviceptr {0};  // plan.{0}_bytes bytes, whatever they hold; without them, "
          "make_plan says how many\n"
          "  int64_t {0}_bytes;\n",
          a.name);
  }
  return out;
}

// The address and the strides of a tensor whose rows are copied.
std::string copy_checks(const std::string& name) {
  return fmt::format(
      "  if (!detail::aligned(in.{0}, 16)) return \"{0}: the address must be a multiple of 16 "
      "bytes\";\n"
      "  if (!detail::copyable(in.{0})) return \"{0}: the last dimension must be contiguous, other "
      "strides positive multiples of 8 elements\";\n",
      name);
}

// The map of a tensor, which is called so in the header.
std::string encode_map(const LaunchArgument& a, const std::string& tensor, const std::string& at) {
  return fmt::format(
      "  if (!detail::encode({1}, {5}, CU_TENSOR_MAP_DATA_TYPE_{2}, {3}, {4}, {6}, "
      "CU_TENSOR_MAP_L2_PROMOTION_L2_{7}B)) return \"{0}: "
      "cuTensorMapEncodeTiled refused it\";\n",
      a.name, at, a.type == "f16" ? "FLOAT16" : "BFLOAT16", a.box_rows, a.box_columns, tensor,
      a.part_of_rows, a.l2_promotion);
}

std::string pack_map(const LaunchArgument& a, const std::string& at) {
  return copy_checks(a.name) + encode_map(a, "in." + a.name, at);
}

// A pointer, strides, extents. A dimension of extent 1 has no stride that matters: where rows are
// copied it is 0, so that every address is a multiple of 16 bytes.
std::string pack_tensor(const LaunchArgument& a, const std::string& at) {
  const size_t rank = a.dims.size();
  std::string out = a.row_alignment
                        ? copy_checks(a.name)
                        : fmt::format(
                              "  if (!detail::aligned(in.{0}, {1})) return \"{0}: the address "
                              "must be a multiple of {1} bytes\";\n",
                              a.name, tl::bytes_of(a.type));
  if (!a.written && !a.row_alignment)  // kw::Tensor multiplies 32-bit numbers there
    out += fmt::format(
        "  if (in.{0}.shape[{1}] > 1 && in.{0}.stride[{1}] * {2} >> 32) return "
        "\"{0}: neighbours in the last dimension must be less than 2^32 bytes apart\";\n",
        a.name, rank - 1, tl::bytes_of(a.type));
  out += fmt::format("  std::memcpy({}, &in.{}.data, 8);\n", at, a.name);
  for (size_t d = 0; d < rank; ++d)
    out += fmt::format(
        "  {{ const int64_t stride = {5}in.{2}.stride[{3}]; std::memcpy({0} + {1}, &stride, 8); "
        "}}\n"
        "  {{ const int32_t extent = int32_t(in.{2}.shape[{3}]); std::memcpy({0} + {4}, &extent, "
        "4); }}\n",
        at, 8 + 8 * d, a.name, d, 8 + 8 * rank + 4 * d,
        a.row_alignment ? fmt::format("in.{}.shape[{}] == 1 ? 0 : ", a.name, d) : "");
  return out;
}

// A tensor that a pre-pass writes: rows that follow each other, behind its map where it has one.
std::string pack_rows(const LaunchArgument& a, const std::string& at) {
  std::string shape;
  for (const ExprPtr& d : a.dims) shape += (shape.empty() ? "" : ", ") + cpp(d);
  std::string out = fmt::format(
      "  {{\n  const Tensor rows = detail::contiguous(in.{0}, {{{1}}});\n"
      "  if (!detail::aligned(rows, 16)) return \"{0}: the address must be a multiple of 16 "
      "bytes\";\n",
      a.name, shape);
  std::string to = at;
  if (a.box_rows) {
    out += encode_map(a, "rows", at);
    to += " + 128";
  }
  return out + fmt::format("  detail::put({}, rows, {});\n  }}\n", to, a.dims.size());
}

std::string packing(const LaunchPlan& plan) {
  std::string out;
  for (const LaunchArgument& a : plan.arguments) {
    const std::string at = fmt::format("plan.parameters + {}", a.offset);
    switch (a.kind) {
      case ArgumentKind::tensor_map:
        out += pack_map(a, at);
        break;
      case ArgumentKind::tensor:
        out += pack_tensor(a, at);
        break;
      case ArgumentKind::size:
      case ArgumentKind::scalar:
        out += fmt::format("  {{ const {0} value = {0}({1}); std::memcpy({2}, &value, 4); }}\n",
                           a.type == "f32" ? "float" : "int32_t", a.name, at);
        break;
      case ArgumentKind::workspace:
        out += fmt::format("  std::memcpy({}, &in.{}, 8);\n", at, a.name);
        break;
      case ArgumentKind::scratch:
        out += fmt::format("  plan.{}_bytes = {};\n", a.name, cpp(scratch_bytes(a)));
        if (!a.rows)
          out += fmt::format("  if (!detail::fits({1})) return \"{0} does not fit 2^31 words\";\n",
                             a.name, cpp(a.dims[0]));
        out += fmt::format(
            "  if (!in.{0} || in.{0}_bytes < plan.{0}_bytes) return \"{0}: plan.{0}_bytes bytes "
            "are needed\";\n",
            a.name);
        out +=
            a.rows ? pack_rows(a, at) : fmt::format("  std::memcpy({}, &in.{}, 8);\n", at, a.name);
        break;
    }
  }
  return out;
}

// What is launched besides the kernel.
std::vector<std::pair<const char*, const std::vector<PrePass>*>> sides(const LaunchPlan& plan) {
  return {{"before", &plan.before}, {"after", &plan.after}};
}
std::string listed(const LaunchPlan& plan,
                   const std::function<std::string(const char*, size_t)>& text) {
  std::string out;
  for (const auto& [side, passes] : sides(plan))
    if (!passes->empty()) out += text(side, passes->size());
  return out;
}

// Where CTAs with shared memory are to share a multiprocessor, most of its memory must be that: the
// driver otherwise leaves as much for the L1 cache as one of them can spare.
std::string load_function(const LaunchPlan& plan) {
  std::string out = fmt::format(
      "\ninline CUresult load(const void* cubin, CUfunction* kernel{}{}) {{\n"
      "  CUmodule module;\n  CUresult result = cuModuleLoadData(&module, cubin);\n"
      "  if (result == CUDA_SUCCESS) result = cuModuleGetFunction(kernel, module, \"{}\");\n"
      "  if (result == CUDA_SUCCESS)\n"
      "    result = cuFuncSetAttribute(*kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, "
      "{});\n",
      plan.before.empty() ? "" : ", CUfunction* before",
      plan.after.empty() ? "" : ", CUfunction* after", plan.entry, plan.shared_bytes);
  for (const auto& [side, passes] : sides(plan))
    for (size_t n = 0; n < passes->size(); ++n)
      out += fmt::format(
          "  if (result == CUDA_SUCCESS) result = cuModuleGetFunction({} + {}, module, "
          "\"{}\");\n",
          side, n, (*passes)[n].entry);
  if (plan.resident > 1 && plan.shared_bytes > 0)
    out += fmt::format(
        "  if (result == CUDA_SUCCESS)  // {} CTAs share a multiprocessor\n"
        "    result = cuFuncSetAttribute(*kernel, "
        "CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, CU_SHAREDMEM_CARVEOUT_MAX_SHARED);\n",
        plan.resident);
  return out + "  return result;\n}\n";
}

// A cluster is an attribute of the launch, which only GPUs with clusters know.
std::string launch_function(const LaunchPlan& plan) {
  std::string out = fmt::format(
      "inline CUresult launch(CUfunction kernel{}{}, const Plan& plan, CUstream stream) {{\n"
      "  CUlaunchConfig config{{}};\n"
      "  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;\n"
      "  config.hStream = stream;\n"
      "  void* parameters[1] = {{const_cast<unsigned char*>(plan.parameters)}};\n",
      plan.before.empty() ? "" : ", const CUfunction* before",
      plan.after.empty() ? "" : ", const CUfunction* after");
  const auto launches = [&](const char* side, const std::vector<PrePass>& passes) {
    for (size_t n = 0; n < passes.size(); ++n)
      out += fmt::format(
          "  config.gridDimX = plan.grid_{2}[{0}];\n"
          "  config.blockDimX = {1};\n"
          "  if (const CUresult result = cuLaunchKernelEx(&config, {2}[{0}], parameters, "
          "nullptr)) "
          "return result;\n",
          n, passes[n].threads, side);
  };
  launches("before", plan.before);
  out += fmt::format(
      "  config.gridDimX = plan.grid;\n"
      "  config.blockDimX = {};\n"
      "  config.sharedMemBytes = {};\n",
      plan.threads, plan.shared_bytes);
  if (plan.cluster > 1)
    out += fmt::format(
        "  CUlaunchAttribute cluster{{}};\n"
        "  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;\n"
        "  cluster.value.clusterDim.x = {};\n"
        "  cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;\n"
        "  config.attrs = &cluster;\n"
        "  config.numAttrs = 1;\n",
        plan.cluster);
  if (plan.after.empty())
    return out + "  return cuLaunchKernelEx(&config, kernel, parameters, nullptr);\n}\n";
  out +=
      "  if (const CUresult result = cuLaunchKernelEx(&config, kernel, parameters, nullptr)) "
      "return result;\n"
      "  config.sharedMemBytes = 0;\n";
  if (plan.cluster > 1) out += "  config.numAttrs = 0;\n";
  launches("after", plan.after);
  return out + "  return CUDA_SUCCESS;\n}\n";
}

// What all kernels of a header share: tensors, tensor maps, checks.
std::string shared_text(const std::vector<const LaunchPlan*>& plans) {
  std::string out = kFrame;
  out += fmt::format(kHeadsAtOnce, tl::kSectionBytes, tl::kSectionBlocks);
  out += fmt::format("constexpr int64_t largest_size = {};  // of what is proved\n", kLargestSize);
  out += kChecks;
  const auto any = [&](auto holds) {
    return std::any_of(plans.begin(), plans.end(), [&](const LaunchPlan* plan) {
      return std::any_of(plan->arguments.begin(), plan->arguments.end(), holds);
    });
  };
  if (any([](const LaunchArgument& a) { return a.box_rows > 0; })) out += kTensorMaps;
  if (any([](const LaunchArgument& a) { return a.rows; })) out += kRows;
  return out + "}  // namespace detail\n";
}

std::string constants_text(const LaunchPlan& plan) {
  std::string out;
  for (const auto& [constant, value] : plan.constants)
    out += fmt::format("constexpr int64_t {} = {};\n", constant, value);
  return out;
}

// Of one kernel: its arguments, its plan, and its launch.
std::string kernel_text(const LaunchPlan& plan) {
  std::string out = "\nstruct Inputs {\n" + fields(plan) + "};\n";
  out += fmt::format(
      "\nstruct Plan {{\n  alignas(64) unsigned char parameters[{}];\n"
      "  unsigned grid;  // CTAs, {}\n",
      plan.parameter_bytes,
      plan.cluster > 1 ? fmt::format("in clusters of {}", plan.cluster) : "each alone");
  if (!plan.before.empty())
    out += fmt::format("  unsigned grid_before[{}];  // of the pre-pass{}\n", plan.before.size(),
                       plan.before.size() > 1 ? "es" : "");
  if (!plan.after.empty())
    out += fmt::format("  unsigned grid_after[{}];  // of what is launched behind it\n",
                       plan.after.size());
  for (const LaunchArgument& a : plan.arguments)
    if (a.kind == ArgumentKind::scratch) out += fmt::format("  int64_t {}_bytes;\n", a.name);
  out += "};\n";
  out +=
      "\n// Returns nullptr, or what is wrong with the inputs; then the plan must not be used.\n"
      "inline const char* make_plan(const Inputs& in, int multiprocessors, Plan& plan) {\n"
      "  std::memset(&plan, 0, sizeof plan);\n" +
      checks(plan) + values(plan) + packing(plan) +
      fmt::format(
          "  [[maybe_unused]] const int64_t SMS = multiprocessors;\n"
          "  const int64_t grid = {};\n"
          "  if (grid < 1 || grid > INT32_MAX) return \"the grid must have 1 to 2147483647 "
          "CTAs\";\n"
          "  plan.grid = unsigned(grid);\n",
          cpp(plan.grid));
  for (const auto& [side, passes] : sides(plan))
    for (size_t n = 0; n < passes->size(); ++n)
      out += fmt::format(
          "  const int64_t grid_{3}_{0} = {1};\n"
          "  if (grid_{3}_{0} < 1 || grid_{3}_{0} > INT32_MAX) return \"{2} must have 1 to "
          "2147483647 CTAs\";\n"
          "  plan.grid_{3}[{0}] = unsigned(grid_{3}_{0});\n",
          n, cpp((*passes)[n].grid), (*passes)[n].entry, side);
  out += "  return nullptr;\n}\n";
  out += load_function(plan);
  out += launch_function(plan);
  return out;
}

constexpr const char* kIncludes =
    "#pragma once\n#include <cuda.h>\n\n#include <algorithm>\n#include <cmath>\n#include "
    "<cstdint>\n#include <cstring>\n#include <numeric>\n\n";

// ", before[1], after[2]": what else load and launch are given.
std::string declared(const LaunchPlan& plan) {
  return listed(plan, [](const char* side, size_t n) { return fmt::format(", {}[{}]", side, n); });
}
std::string given(const LaunchPlan& plan) {
  return listed(plan, [](const char* side, size_t) { return fmt::format(", {}", side); });
}

// How both are launched, in the comment on top.
std::string example_of_both(const TwoPlans& two, const std::string& name) {
  const auto loaded = [&](const LaunchPlan& plan, const char* half) {
    return fmt::format(
        "//   CUfunction {0}{1};\n"
        "//   {2}::{0}::load(bytes of {0}/kernel.cubin, &{0}{3});\n",
        half, declared(plan), name, given(plan));
  };
  const auto planned = [&](const LaunchPlan& plan, const char* half, const char* inputs) {
    return fmt::format(
        "//   {1}::{0}::Plan {0}_plan;\n"
        "//   const char* {0}_wrong = {1}::{0}::make_plan({3}, multiprocessors, {0}_plan);\n"
        "//   {1}::{0}::launch({0}{2}, {0}_plan, stream);\n",
        half, name, given(plan), inputs);
  };
  std::string saved;
  for (const auto& [from, to] : two.passed)
    saved += (saved.empty() ? "" : ", ") + (from == to ? from : fmt::format("{} as {}", from, to));
  return fmt::format(
             "// How to launch {0}, {1} and its gradients, {2} ({3}), from C++: load two cubins, "
             "plan both once\n// a shape, launch the one and, when the output's gradient is there, "
             "the other.\n//\n",
             name, two.forward.entry, two.backward.entry, two.forward.target) +
         loaded(two.forward, "forward") + loaded(two.backward, "backward") +
         fmt::format("//   {0}::forward::Inputs in = {{...}};\n", name) +
         planned(two.forward, "forward", "in") +
         fmt::format("//   {0}::backward::Inputs back = {{}};\n//   {0}::pass(in, back);  // {1}\n",
                     name,
                     saved.empty() ? "what both read; nothing is saved"
                                   : "what both read, and what was saved: " + saved) +
         "//   ...                     // the output's gradient, the gradients, the scratches\n" +
         planned(two.backward, "backward", "back") +
         "//\n// Between the launches nobody may write what is passed.\n";
}

}  // namespace

std::string launch_header(const LaunchPlan& plan, const std::string& name) {
  return fmt::format(
             "// How to launch {0} ({1}) from C++: load the cubin, plan once a shape, launch.\n"
             "//\n"
             "//   CUfunction kernel{3};  {2}::load(cubin_bytes, &kernel{4});\n"
             "//   {2}::Plan plan;     const char* wrong = {2}::make_plan({{...}}, "
             "multiprocessors, "
             "plan);\n"
             "//   {2}::launch(kernel{4}, plan, stream);\n",
             plan.entry, plan.target, name, declared(plan), given(plan)) +
         kIncludes + fmt::format("namespace {} {{\n", name) + constants_text(plan) +
         shared_text({&plan}) + kernel_text(plan) + fmt::format("\n}}  // namespace {}\n", name);
}

std::string launch_header(const TwoPlans& two, const std::string& name) {
  std::string out = example_of_both(two, name) + kIncludes + fmt::format("namespace {} {{", name) +
                    shared_text({&two.forward, &two.backward});
  for (const auto& [half, plan] :
       {std::pair<const char*, const LaunchPlan*>{"forward", &two.forward},
        {"backward", &two.backward}})
    out += fmt::format("\nnamespace {} {{\n", half) + constants_text(*plan) + kernel_text(*plan) +
           fmt::format("}}  // namespace {}\n", half);
  out +=
      "\n// What the backward launch reads of the forward one's arguments, and of its outputs.\n"
      "inline void pass([[maybe_unused]] const forward::Inputs& in, [[maybe_unused]] "
      "backward::Inputs& back) {\n";
  for (const auto* pairs : {&two.shared, &two.passed})
    for (const auto& [from, to] : *pairs) out += fmt::format("  back.{} = in.{};\n", to, from);
  return out + fmt::format("}}\n\n}}  // namespace {}\n", name);
}

}  // namespace kw::lower
