// How a module's kernel is launched, derived from its TL: grid, clusters, threads, shared memory,
// the layout of the argument struct, tensor maps, what a caller must respect.
//
// A module with pre-passes is several launches with one argument struct, one after the other in the
// same stream.
//
// One generator serves two readers: launch.json (the project's own runtime) and launch.h (anybody's
// C++ program). Layouts follow C++'s rules for the structs of the CUDA text: a tensor map is 128
// bytes, 64-aligned; a tensor is a pointer, strides and extents, 8-aligned; scalars are 4 bytes. A
// tensor that a pre-pass writes is a scratch: a tensor, behind its map where it is tiled.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tl/program.h"

namespace kw::lower {

enum class ArgumentKind { tensor_map, tensor, size, scalar, workspace, scratch };

struct LaunchArgument {
  std::string name;
  ArgumentKind kind;
  int64_t offset = 0, bytes = 0;
  std::string type;               // element or scalar type: "bf16", "f32", "i32"
  std::vector<tl::ExprPtr> dims;  // of tensors: letters or numbers; of words: how many
  bool rows = false;              // of a scratch: a tensor, not words
  bool written = false;
  int64_t box_rows = 0, box_columns = 0;  // of tensor maps
  bool part_of_rows = false;              // of a tensor map: a box is a part of rows of any length
  int l2_promotion = 256;                 // of tensor maps: the bytes that L2 fetches at a time
  int64_t row_alignment = 0;              // bytes, of tensors that are copied row by row; else 0
  tl::ExprPtr value;                      // of sizes and scalars computed at launch; else null
};

// A kernel that runs before.
struct PrePass {
  std::string entry;
  int64_t threads = 0;
  tl::ExprPtr grid;
};

struct LaunchPlan {
  std::string entry;
  std::string target;  // "sm_90a"
  int64_t threads = 0, shared_bytes = 0, parameter_bytes = 0;
  int64_t cluster = 1;   // CTAs that share their shared memory
  int64_t resident = 1;  // CTAs that are to share a multiprocessor
  tl::ExprPtr grid;      // CTAs, a multiple of cluster; over sizes, values and SMS
  std::map<std::string, int64_t> constants;
  std::vector<LaunchArgument> arguments;
  std::vector<tl::ExprPtr> requirements;  // conditions over sizes
  std::vector<PrePass> before;            // in the order of their launches
  std::vector<PrePass> after;             // launched behind the kernel, likewise

  // Of the cubin; the kernel's own first.
  std::vector<std::string> entries() const {
    std::vector<std::string> all = {entry};
    for (const PrePass& p : before) all.push_back(p.entry);
    for (const PrePass& p : after) all.push_back(p.entry);
    return all;
  }
};

// How many bytes a scratch takes.
tl::ExprPtr scratch_bytes(const LaunchArgument& a);

// Reports launch.* with the TL statement when the program leaves something open (no kernel, nothing
// that hands out blocks, a tensor map whose copies differ in shape) or takes more shared memory
// than the target has, and target.* where it has statements that the target has not.
std::optional<LaunchPlan> plan_launch(const tl::Program& program, const std::string& target,
                                      Diagnostics& diagnostics);

nlohmann::json to_json(const LaunchPlan& plan);
// A TL expression over sizes as launch.json writes it: ["min", "blocks", "SMS"].
nlohmann::json launch_json(const tl::ExprPtr& e);

// A C++17 header that includes nothing but <cuda.h> and the standard library: load, plan, launch.
// `name` becomes its namespace.
std::string launch_header(const LaunchPlan& plan, const std::string& name);

// Two kernels of one function: that of its output, and that of its gradients. By the forward
// kernel's name of an argument the backward one's: of what both read (`shared`), and of what the
// one writes for the other (`passed`).
struct TwoPlans {
  const LaunchPlan &forward, &backward;
  std::vector<std::pair<std::string, std::string>> shared, passed;
};
// Of both, in namespaces `name`::forward and `name`::backward, which share one Tensor; `name`::pass
// hands over what is shared and passed.
std::string launch_header(const TwoPlans& two, const std::string& name);

}  // namespace kw::lower
