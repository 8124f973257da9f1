// The judge: what a kernel left in its outputs, held against what it must have left.
//
// Everything here is a function of bytes. kernelwright-prove calls it in the process that never
// touches the GPU, with bytes that another process read back: a broken context cannot change a
// verdict, and the process that launches never has the truth.
//
// A golden of rows accepts a relative L2 error for each row; one of elements an absolute error. A
// golden with the rule "window" is of rows whose V was an identity, so each element is one entry of
// the attention matrix: zero must be exactly zero (a masked key), every other entry right to 2 %,
// and all of them together to 0.5 % in the root mean square. A correct kernel that rounds P to bf16
// has 0.75 % and 0.24 % (docs/evidence.md).
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "runtime/prove/prove_spec.h"

namespace kw::runtime {

inline constexpr double kWindowEach = 2e-2, kWindowAll = 5e-3;

struct Output {
  std::string name;
  Strided layout;
  std::string_view bytes;  // of the tensor, in the order of its memory
};

// Every element was written, and is no NaN unless `nan_allowed`. Reports prove.unwritten and
// prove.nan with the first place. Types of one byte have no value to spare for a canary.
void scan_output(const Output& output, bool nan_allowed, Diagnostics& findings);

// One golden. Reports prove.error or prove.window; gives {output, rows, worst_ratio, worst_error,
// accepted, worst_index}.
nlohmann::json compare_golden(const Golden& golden, const Output& output, Diagnostics& findings);

// Whether `now` is `before` with the signs of some heads changed: signs[b * heads + h] for each of
// the tensor's first two dimensions, or for heads in groups of equal size. A zero has any sign.
bool differs_in_signs_only(const Output& before, std::string_view now,
                           const std::vector<bool>& signs, int64_t groups);
// Changes those signs in place.
void change_signs(std::string& bytes, const Strided& layout, const std::vector<bool>& signs);

// ---- the floor: nothing is faster than the machine

struct Peaks {
  double flops = 0;  // a second: dense 16-bit products; 0: not known for this GPU
  double bytes = 0;  // a second: DRAM
};
// Tensor-core products of 16-bit numbers in a clock and multiprocessor (CUDA C++ Programming Guide,
// "Arithmetic Instructions"; NVIDIA's white papers of A100, GA102, AD102 and H100).
Peaks peaks_of(int capability, int multiprocessors, int clock_khz, int memory_khz, int bus_bits);

// Milliseconds that `flop` operations and `bytes` bytes of DRAM take at least, times 0.98.
double floor_ms(const Peaks& peaks, double flop, double bytes);

}  // namespace kw::runtime
