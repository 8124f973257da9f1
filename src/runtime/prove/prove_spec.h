// prove.json: what a kernel must give, for a machine that has only the kernel and a GPU.
//
// It lies in a folder with kernel.cubin and launch.json. Inputs are not stored: each is drawn from
// a seed by the generator of num/random.h. Of the true outputs, sampled rows are stored in fp64.
//
// clang-format off
//   { "cases": [
//       { "name": "ragged 1000x777",
//         "seed": 7,
//         "sizes": {"B": 2, "H": 32, "G": 8, "M": 1000, "N": 777},  // every name in launch.json's dims
//         "layout": "BSHD",                     // or "BHSD": the order in memory of dims of rank 4
//         "scalars": {"cap": 30.0},             // those that the caller supplies; may be absent
//         "inputs": {                           // one draw for each tensor that is read
//           "q": {"kind": "normal", "stream": 0, "scale": 1.0},
//           "v": {"kind": "normal", "stream": 2, "scale": 1.0, "mean": 1.0},
//           "v": {"kind": "window", "from": 384, "value": 1.0},     // see Contents of strided.h
//           "bias": {"kind": "uniform", "stream": 1, "scale": 2.0},
//           "prefix": {"kind": "integer", "stream": 3, "low": 0, "high": 777},
//           "slopes": {"kind": "constant", "value": 0.5},
//           "lse": {"kind": "given", "values": "0.lse.given.npy"} },     // row-major, of this seed
//         "goldens": [
//           {"output": "o",   "rows": "0.o.rows.npy",   "values": "0.o.npy",   "accepted": "0.o.accepted.npy"},
//           {"output": "lse", "rows": "0.lse.rows.npy", "values": "0.lse.npy", "accepted": "0.lse.accepted.npy"} ],
//         "flop": 1.6e9,                        // for TFLOP/s and the floor; may be absent
//         "launches": 20,                       // on the same inputs, which must give the same bits; or 2
//         "signs": {"input": "v", "outputs": ["o"]},   // what a timed launch changes; may be absent
//         "timed": true } ] }                   // may be absent: false
// clang-format on
//
// Element n of an input, in the row-major order of its dims, is element n of its stream, times
// scale, rounded to its type; the layout only says where it lies.
// A golden's arrays: `rows` is i64 [R, K], indices into the output's dims; `values` and `accepted`
// are f64. With K one less than the output's rank, each line of `rows` names a row, `values` is
// [R, columns] and `accepted` [R] is the relative L2 error that is accepted of the row. With K
// equal to the rank, each line names one element, `values` is [R] and `accepted` [R] an absolute
// error. Where the truth is infinite or NaN the output must be so too. Paths are relative to the
// folder. "rule": "window" in a golden of rows has every element compared (see judge.h), and
// `accepted` is what counts as nothing in a row. With "mask": 65535 values are words, integers:
// those bits of each element must be the same, whatever number they spell (a KW_EXACT build).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/launch_spec.h"
#include "runtime/launch/strided.h"

namespace kw::runtime {

struct Golden {
  std::string output;
  bool window = false;
  Tensor rows, values, accepted;
  uint32_t mask = 0;  // not 0: values are words, and the output's must be the same in these bits
};

struct ProveCase {
  std::string name;
  uint64_t seed = 0;
  Bindings sizes;
  bool rows_before_heads = false;  // layout "BSHD"
  std::map<std::string, double, std::less<>> scalars;
  std::map<std::string, Contents, std::less<>> inputs;
  std::vector<Golden> goldens;
  double flop = 0;
  int launches = 2;  // on the same inputs
  // Of a timed launch: with the sign of this input changed for some heads, the sign of these
  // outputs changes there, and no other bit. Empty: its inputs stay as they are.
  std::string signed_input;
  std::vector<std::string> signed_outputs;
  bool timed = false;
};

struct ProveSpec {
  std::vector<ProveCase> cases;
};

// The shape of a tensor argument at a case's sizes; empty when a size is missing or below 1.
std::vector<int64_t> shape_of(const Argument& argument, const LaunchSpec& launch,
                              const Bindings& sizes);

// Reads FOLDER/prove.json and its arrays, and holds them against launch.json. Reports prove.json by
// the case's name and the field.
std::optional<ProveSpec> read_prove_spec(const std::string& folder, const LaunchSpec& launch,
                                         Diagnostics& diagnostics);

}  // namespace kw::runtime
