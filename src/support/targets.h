// The GPU architectures that kernels are compiled for, in one table: which folder of kernels/ has
// the expert text for it, and what its hardware allows.
//
// sm_90a is Hopper with its own instructions (wgmma, TMA), which sm_90 lacks: code for sm_90 and
// below is the Ampere-class text; sm_75 has no text, only what is made from a sketch. A cubin for
// sm_80 also runs on later minors of 8, slower than one of theirs. Source: CUDA C++ Programming
// Guide, "Technical Specifications per Compute Capability"; products from the whitepapers that
// gpus/*.json names for each GPU, and a test holds both to the same numbers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kw {

struct TargetLimits {
  std::string_view name;           // sm_90a
  std::string_view folder;         // of kernels/; empty: no expert's text
  int64_t block_shared_bytes;      // at most for one CTA
  int64_t processor_shared_bytes;  // of a multiprocessor, for all of its CTAs
  int64_t reserved_bytes;          // of these, what the system takes for each CTA
  int flop_per_clock;              // a multiprocessor's, in dense products of 16-bit elements
  bool ampere;                     // products of bf16, copies under way (cp.async)
  bool hopper;                     // its own instructions: wgmma, TMA, clusters, setmaxnreg
  bool fp8;                        // conversions of e4m3
  std::string_view gpus;
};

// What the system takes of a multiprocessor's shared memory for each CTA since sm_80.
inline constexpr int64_t reserved_shared_bytes = 1024;

std::span<const TargetLimits> targets();
// Null for a target that is not in the table.
const TargetLimits* find_target(std::string_view name);
// "sm_90a, sm_80, ...": all of them, or those that have an expert's text.
std::string target_names(bool with_text = false);

}  // namespace kw
