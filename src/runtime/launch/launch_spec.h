// launch.json: how a kernel is launched, written by the generator that made it.
//
//   { "entry": "attention_fwd", "target": "sm_90a", "threads": 384, "shared_bytes": 230000,
//     "parameter_bytes": 704,
//     "cluster": 2, "resident": 1,
//     "grid": ["*", 2, ["min", ["*", ["ceil_div", "M", 256], "H", "B"], ["//", "SMS", 2]]],
//     "requires": [[">=", "M", 1]],
//     "constants": {"D": 128},
//     "arguments": [
//       {"name": "q", "kind": "tensor_map", "offset": 0, "dtype": "bf16",
//        "dims": ["B", "H", "M", "D"], "box": {"rows": 64, "columns": 128}, "access": "read",
//        "l2_promotion": 256},
//       {"name": "lse", "kind": "tensor", "offset": 512, "dtype": "f32", "dims": ["B", "H", "M"],
//        "access": "write"},
//       {"name": "B", "kind": "size", "offset": 600},
//       {"name": "scale", "kind": "scalar", "dtype": "f32", "offset": 620,
//        "value": ["*", ["rsqrt", 128], "log2e"]},
//       {"name": "queue", "kind": "workspace", "offset": 640, "bytes": 8} ],
//     "before": [{"entry": "attention_lists", "threads": 512, "grid": ["ceil_div", "M", 256]}] }
//
// The grid is a number of CTAs, a multiple of "cluster": so many of them form a cluster,
// whose blocks reach each other's shared memory (1: every block is alone). A kernel that numbers
// its blocks in three dimensions has "grid_y" and "grid_z" beside it. Of "resident" CTAs
// that are to share a multiprocessor, each must find room for its shared memory.
//
// The kernel takes one struct of parameter_bytes bytes; each argument is a field at its offset:
//   tensor_map  128 bytes, 64-aligned: a tensor of four dims (batch, head, row, column). With
//               "part_of_rows" a box is 128 bytes of rows of any length
//   tensor      { T* data; i64 stride[rank]; i32 extent[rank]; }, 8-aligned; strides in elements.
//               With "row_alignment" its rows are copied so many bytes at a time: a contiguous last
//               dimension, and multiples of that for the address and the other strides
//   pointer     the address of a tensor and nothing else, for kernels whose struct is not ours.
//               A dimension without a "stride" argument follows the next one without a gap
//   stride      an i64: how many elements apart neighbours of "of", a pointer, are in its
//               dimension "dim"
//   size        an i32: the size of that name, or "value"
//   scalar      one number of its dtype: the caller's of that name, or "value"
//   workspace   a pointer to "bytes" zeroed bytes; the kernel leaves zeros behind
//   scratch     a pointer to "bytes" bytes, whatever they hold. With "dims" it is a tensor in them
//               whose rows follow each other, and with "box" this stands behind its tensor map
// "before", where it is there, are entries that are launched first, in this order, in the same
// stream and with the same struct; they are how scratches get their contents. "after" lists those
// that are launched behind it in the same way, which read what it leaves in scratches. Sizes are
// the names in dims. Expressions (see expression.h) may read sizes, constants, the scalars that the
// caller gives, earlier values, and SMS, the number of multiprocessors.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "num/dtype.h"
#include "runtime/launch/expression.h"
#include "support/diagnostic.h"

namespace kw::runtime {

// The limit of every architecture (Volta and later take up to 32764 with a driver of CUDA 12.1).
inline constexpr int64_t largest_parameters = 4096;
// The portable limit (CUDA C++ Programming Guide, "Thread Block Clusters").
inline constexpr int64_t largest_cluster = 8;
// CTAs on a multiprocessor (CUDA C++ Programming Guide, compute capability 8.0 and 9.0).
inline constexpr int64_t largest_resident = 32;

enum class ArgumentKind { tensor_map, tensor, pointer, stride, size, scalar, workspace, scratch };

struct Argument {
  std::string name;
  ArgumentKind kind = ArgumentKind::size;
  int64_t offset = 0;
  Dtype dtype = Dtype::i32;      // of elements, or of the scalar
  std::vector<Expression> dims;  // tensor_map, tensor, pointer, scratch: each a name or a number
  int64_t box_rows = 0, box_columns = 0;  // tensor_map, scratch: what one copy moves
  bool part_of_rows = false;              // tensor_map: a box is a part of rows of any length
  bool written = false;                   // tensor_map, tensor, pointer
  int l2_promotion = 0;                   // tensor_map: 0, 64, 128 or 256 bytes
  int64_t row_alignment = 0;              // tensor, pointer: 16 bytes where rows are copied, else 0
  std::string of;                         // stride: which pointer's
  int64_t dim = 0;                        // stride: of which dimension
  std::optional<Expression> value;        // size, scalar
  std::optional<Expression> bytes;        // workspace, scratch

  bool is_tensor() const {
    return kind == ArgumentKind::tensor_map || kind == ArgumentKind::tensor ||
           kind == ArgumentKind::pointer;
  }
  int64_t size_in_struct() const;
  int64_t alignment_in_struct() const;
};

struct Requirement {
  std::string comparison;  // one of >= > <= < == !=
  Expression left, right;
};

// What is launched before the kernel, or behind it.
struct PrePass {
  std::string entry;
  int64_t threads = 0;
  Expression grid;
};

struct LaunchSpec {
  std::string entry, target;
  int64_t threads = 0, shared_bytes = 0, parameter_bytes = 0;
  int64_t cluster = 1, resident = 1;
  Expression grid;
  std::optional<Expression> grid_y, grid_z;  // absent: 1
  std::vector<Requirement> requirements;
  Bindings constants;
  std::vector<Argument> arguments;
  std::vector<PrePass> before, after;

  const Argument* find(std::string_view name) const;
  // Of the cubin; the kernel's own first.
  std::vector<std::string> entries() const {
    std::vector<std::string> all = {entry};
    for (const PrePass& p : before) all.push_back(p.entry);
    for (const PrePass& p : after) all.push_back(p.entry);
    return all;
  }
};

// Reports launch.json with the place in the text (of a syntax error) or the path of the field, and
// launch.layout when fields overlap, are misaligned or reach past parameter_bytes.
std::optional<LaunchSpec> read_launch_spec(const SourcePtr& source, Diagnostics& diagnostics);

}  // namespace kw::runtime
