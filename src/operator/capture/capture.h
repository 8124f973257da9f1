// A captured spec: the form, and what PyTorch computed.
//
// A Python process (python/kernelwright/capture/capture.py) writes a folder; load_capture() reads
// it, forms the attention form and compares its meaning with PyTorch's goldens before anyone builds
// on it.
#pragma once
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "operator/evaluate/evaluate.h"
#include "operator/form.h"

namespace kw::spec {

// One golden case. Inputs are made from the seed; outputs are stored.
struct GoldenCase {
  std::map<std::string, int64_t> sizes;  // by the form's names
  Draws draws;
  std::vector<int64_t> heads;  // the heads that `truth` holds
  std::vector<int64_t> rows;   // and the rows; empty: all
  // f64 [B, heads.size(), M, columns]: PyTorch's first output, in fp64; 1 column of sums alone.
  Tensor truth;
  // f64 [B, H, M]: relative L2 error of the user's own function, in its own dtype, against the
  // truth. NaN in a row where either is NaN.
  Tensor own_error;
  // PyTorch's other outputs, of all heads, in the order of their axes; of a log-sum and of row sums
  // none is kept.
  struct Other {
    std::optional<Tensor> values;
    std::optional<Tensor> own_error;  // of its rows, where it is known: without the last axis
    std::vector<int64_t> heads;       // the key heads that `values` holds; empty: all
  };
  std::vector<Other> others;
};

struct Capture {
  Form form;
  // What it was captured for; a form whose gradients take nothing of the forward kernel doesn't
  // tell.
  Training training = Training::none;
  SourcePtr source;  // the user's file as it was read
  std::vector<GoldenCase> cases;
  // Around constants that the function compares positions with, of a few rows each: the form is
  // held against them, and nothing is run on them.
  std::vector<GoldenCase> far;
  // Integer arguments whose meaningful values go up to the longest size, prefix and other lengths;
  // or up to so many times as much, where they count in finer steps than the operands' rows.
  std::map<std::string, int64_t> lengths;
};

// How many of the golden cases load_capture() holds the form against.
enum class SelfCheck { none, some, all };

// Reads what the Python process wrote. Refusals have codes spec.*; the code internal.form means
// that the form does not compute what PyTorch does: our own fault (exit 70), never the user's.
std::optional<Capture> load_capture(const std::filesystem::path& folder, Diagnostics& diagnostics,
                                    SelfCheck check = SelfCheck::some);

// The arguments of a golden case.
std::optional<Problem> problem_of(const Form& form, const GoldenCase& golden,
                                  Diagnostics& diagnostics);

// How to draw the arguments at other sizes: as in the first golden case, lengths over 0 .. the
// longest of the sizes.
Draws draws_for(const Capture& capture, const std::map<std::string, int64_t>& sizes, uint64_t seed);

// Evaluates the form on each step-th case; errors above 1e-9 are refused with internal.form.
bool check_goldens(const Capture& capture, int step, Diagnostics& diagnostics);

// ---- running the Python process

struct CaptureRequest {
  std::string spec;      // the user's file
  std::string function;  // empty: the one named after the file, or the only one
  std::string dtype;     // empty, "bf16" or "f16": for fp32 specs
  std::filesystem::path out;
  std::vector<std::array<int64_t, 3>> cases;  // more golden cases, each B, M, N
  Training training = Training::none;
};

// The command; it needs PYTHONPATH to hold the folder that holds the package `kernelwright`.
// Exit code 0: `out` is complete. 2: standard output is {"diagnostics": [...]}. Anything else is
// our own fault, and standard error says more.
std::vector<std::string> capture_command(const CaptureRequest& request,
                                         const std::string& python = "python3");

// Adds what the process wrote to standard output; false when that is not what it writes.
bool read_problems(const std::string& standard_output, Diagnostics& diagnostics);

}  // namespace kw::spec
