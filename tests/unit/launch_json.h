// A launch.json with one argument of each kind, and tensors that fit it.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "runtime/launch/launch.h"

namespace kw::runtime {

using Json = nlohmann::json;

inline Json attention() {
  return Json::parse(R"({
    "entry": "attention_fwd", "target": "sm_90a", "threads": 384, "shared_bytes": 230000,
    "parameter_bytes": 448, "cluster": 1, "resident": 1,
    "grid": ["min", ["*", ["ceil_div", "M", 128], "H", "B"], "SMS"],
    "requires": [["==", ["%", "H", "G"], 0]],
    "constants": {"D": 128},
    "arguments": [
      {"name": "q", "kind": "tensor_map", "offset": 0, "dtype": "bf16",
       "dims": ["B", "H", "M", "D"], "box": {"rows": 64, "columns": 128}, "access": "read",
       "l2_promotion": 256},
      {"name": "k", "kind": "tensor_map", "offset": 128, "dtype": "bf16",
       "dims": ["B", "G", "N", "D"], "box": {"rows": 128, "columns": 128}, "access": "read",
       "l2_promotion": 256},
      {"name": "lse", "kind": "tensor", "offset": 256, "dtype": "f32", "dims": ["B", "H", "M"],
       "access": "write"},
      {"name": "B", "kind": "size", "offset": 304},
      {"name": "H", "kind": "size", "offset": 308},
      {"name": "group", "kind": "size", "offset": 312, "value": ["//", "H", "G"]},
      {"name": "scale", "kind": "scalar", "dtype": "f32", "offset": 316,
       "value": ["*", ["rsqrt", "D"], "log2e"]},
      {"name": "cap", "kind": "scalar", "dtype": "f32", "offset": 320},
      {"name": "queue", "kind": "workspace", "offset": 328, "bytes": 8}]})");
}

inline std::optional<LaunchSpec> read(const Json& json, Diagnostics& diagnostics) {
  return read_launch_spec(make_source("launch.json", json.dump(1)), diagnostics);
}

// 48 tiles of the output, in clusters of two CTAs.
inline Json in_clusters() {
  Json json = attention();
  json["cluster"] = 2;
  json["grid"] = Json::parse(
      R"(["*", 2, ["min", ["*", ["ceil_div", "M", 128], "H", "B"], ["//", "SMS", 2]]])");
  return json;
}

// A tensor as PyTorch makes it: contiguous, or [B, S, H, D] seen as [B, H, S, D].
inline TensorView contiguous(uint64_t data, Dtype dtype, std::vector<int64_t> shape) {
  TensorView view{data, dtype, shape, std::vector<int64_t>(shape.size(), 1)};
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i)
    view.strides[i] = view.strides[i + 1] * shape[i + 1];
  return view;
}

inline Tensors attention_tensors() {
  Tensors tensors;
  tensors["q"] = contiguous(0x10000, Dtype::bf16, {2, 8, 300, 128});
  tensors["k"] = {0x20000, Dtype::bf16, {2, 2, 500, 128}, {500 * 256, 128, 256, 1}};
  tensors["lse"] = contiguous(0x30000, Dtype::f32, {2, 8, 300});
  return tensors;
}

}  // namespace kw::runtime
