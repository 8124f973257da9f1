// How far rounding may take an output of attention from the formula, for any number of keys.
//
// The bound is the worst case: every rounding to the same side. It holds for programs whose turns
// have the form of turns.h, and for scores of which the products |q_d| |k_d|, times the scale, sum
// up to at most 2^7 binades. It is a part of the largest |v| of a row's keys:
//
//   2 ln2 E   a weight's relative error: E is its exponent's absolute one. A product of D terms is
//             taken to lose 2^-25 of the largest for each term and each step of 16
//   u         a weight rounded to the element type (2^-8 of bf16, 2^-11 of fp16), in the output's
//             sum and not in the weights' sum; another u for the output
//   N c       what sums of N terms lose, each of the sums in its order
//
// How errors really grow, with the root of N, is shown by the values reading at its sizes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "operator/form.h"
#include "tl/program.h"

namespace kw::proofs {

struct Rounding {
  double fixed = 0, per_key = 0;
  double at(int64_t keys) const { return fixed + per_key * double(keys); }
};

inline constexpr double kBinades = 0x1p7;  // of scores, in either direction
inline constexpr int64_t kMostKeys = int64_t{1} << 20;
inline constexpr int64_t kTold[] = {4096, kMostKeys};  // numbers of keys that a report tells
inline constexpr double kMostRounding = 0x1p-2;        // of a row at that many keys

// `columns`: of a tile of scores. Nothing without a reference, or where the program has no number
// D.
std::optional<Rounding> rounding_of(const tl::Program& program, const spec::Form& form,
                                    int64_t columns);

// Whether a program rounds by a function of its own: what follows is then known by no proof.
bool rounds_in_a_map(const tl::Program& program);
inline constexpr char kRoundsInAMap[] = "`to_bf16`, of which no proof knows";

std::string print(const Rounding& r);

}  // namespace kw::proofs
