// The bound of a row's rounding holds on runs, and is no looser than a worst case has to be.
#include "proofs/reals/rounding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "check/planted.h"
#include "hand_captures.h"
#include "operator/evaluate/evaluate.h"
#include "with_heads.h"

namespace kw::check {
namespace {

struct Rounded {
  double worst = 0;  // of all rows: the largest error over the largest |v| of the head
  double bound = 0;
};

Rounded rounded(const std::string& lines, const std::string& target, int64_t n) {
  const spec::Capture capture = test::capture_of(test::with_heads(transfer::form_of(lines), 8));
  const spec::Form& form = capture.form;
  Diagnostics d;
  const auto [kernel, machine] = transfer::start_of(form, target);
  const auto made = transfer::transfer(kernel, form, machine, d);
  Case c = case_of(capture, 1, 70, n, 1);
  choose_heads(form, c, true);
  const auto problem = problem_of(form, c, d);
  if (!made || !problem) throw std::runtime_error(render(d));
  const auto launch = bind(made->program, form, *problem, c, d);
  if (!launch) throw std::runtime_error(render(d));
  const Tensor got = exec::run(made->program, *launch).outputs.at("o"),
               want = spec::evaluate(form, *problem).output;
  double largest = 0;
  for (const double v : problem->tensors.at("v").values) largest = std::max(largest, std::fabs(v));
  Rounded r;
  for (size_t k = 0; k < want.values.size(); ++k)
    r.worst = std::max(r.worst, std::fabs(got.values[k] - want.values[k]) / largest);
  const auto bound = proofs::rounding_of(made->program, form, 64);
  r.bound = bound ? bound->at(n) : 0;
  return r;
}

TEST(Rounding, stays_below_its_bound) {
  for (const char* lines : {"score s * 0.125\n", "score s * 0.125\nkeep j <= i\n",
                            "score tanh(s * 0.01) * 100.0\nkeep j <= i\n"})
    for (const char* target : {"sm_80", "sm_90a"})
      for (const int64_t n : {1, 70, 700}) {
        const Rounded r = rounded(lines, target, n);
        EXPECT_LT(r.worst, r.bound) << lines << target << ", N " << n;
        EXPECT_LT(r.bound, 0.2) << lines;
        if (n == 70) {
          EXPECT_GT(r.worst, r.bound / 100) << lines << target;
        }
      }
}

TEST(Rounding, is_unknown_of_what_has_no_reference) {
  EXPECT_EQ(rounded("score sigmoid(s)\nnormaliser none\n", "sm_80", 70).bound, 0);
}

}  // namespace
}  // namespace kw::check
