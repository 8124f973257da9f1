// A softmax over scores that a function bounds needs no maximum: its weights are exponentials as
// they are, divided by their sum.
//
//   softmax over tanh(s * 0.02) * 50   ->   exp(tanh(s * 0.02) * 50) / sum of that
//   (the rule about the normaliser writes it)
//
// When     intervals show that |score| is at most 55, so that an exponential lies within 2^-80 and
//          2^80: sums of 2^24 of them, times values up to 2^23, are floats, and so is the smallest.
//          A bfloat16 has the range of a float; of float16 weights the kernel needs a maximum. A
//          sink has no bound. Where the output is saved for gradients the largest weight of a row
//          must be 1 (saves). Parts of a row are combined by log-sums that have a maximum.
// Effect   none beyond rounding: weights are relative to 1 and not to about the row's largest.
#include <fmt/format.h>

#include "transfer/families/attention/rules/rules.h"
#include "transfer/masks/predicate_intervals.h"

namespace kw::transfer {
namespace {

constexpr double kLargest = 55;  // 55 * log2e < 80

}  // namespace

bool rule_bounded(Edit& edit) {
  if (edit.normaliser != spec::Normaliser::softmax || edit.sink || edit.form.saves ||
      !edit.facts.part_def.empty() || edit.form.dtype != Dtype::bf16)
    return true;
  const Interval scores = range(edit.score, {});
  if (scores.low < -kLargest || scores.high > kLargest) return true;
  edit.normaliser = spec::Normaliser::sum;
  edit.score = spec::unary("exp", edit.score);
  edit.keeps_lse = true;
  edit.result.notes.push_back(
      fmt::format("the scores lie between {:.4g} and {:.4g}: no maximum of a row is kept",
                  scores.low, scores.high));
  return true;
}

}  // namespace kw::transfer
